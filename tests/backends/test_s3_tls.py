"""S3 over TLS, with a certificate that only its owner trusts."""

from __future__ import annotations

import datetime
import ipaddress
import uuid
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lakelog.core import DeltaLog, write_arrow
from lakelog.logstores import S3ConditionalLogStore
from lakelog.logstores.s3.client import S3Client
from support.forward_proxy import HOST, ForwardProxy
from support.servers.minio import run_minio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.minio import S3Endpoint

pytestmark = pytest.mark.needs("minio")

PATH = "s3a://secure/t/_delta_log/00000000000000000000.json"
QUICK = {
    "spark.lakelog.store.endpointProbe": "never",
    "spark.lakelog.store.retry.timeBudget": "1",
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that it signed itself, as MinIO wants them named."""
    folder = tmp_path_factory.mktemp("certificates")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address, x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "public.crt").write_bytes(certificate.public_bytes(pem))
    (folder / "private.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


@pytest.fixture(scope="module")
def secure(certificates: Path) -> Iterator[S3Endpoint]:
    with run_minio(certificates=certificates) as endpoint:
        yield endpoint


def test_a_certificate_that_no_one_trusts_is_reported_at_once(
    secure: S3Endpoint, no_aws: pytest.MonkeyPatch
) -> None:
    store = S3ConditionalLogStore({**secure.conf, **QUICK})
    with pytest.raises(OSError, match="a private certificate set AWS_CA_BUNDLE"):
        store.write(PATH, ["{}"])


def test_log_and_data_files_trust_the_bundle_that_is_named(
    secure: S3Endpoint, certificates: Path, no_aws: pytest.MonkeyPatch
) -> None:
    no_aws.setenv("AWS_CA_BUNDLE", str(certificates / "public.crt"))
    S3Client.from_conf(secure.conf, "secure").sdk.create_bucket(Bucket="secure")
    host = secure.url.removeprefix("https://")
    store = S3ConditionalLogStore({**secure.conf, **QUICK, "spark.hadoop.fs.s3a.endpoint": host})
    store.write(PATH, ["{}"])
    assert list(store.read(PATH)) == ["{}"]
    data = store.filesystem_path(f"s3a://secure/t/{uuid.uuid4().hex}.parquet")
    with store.filesystem.open_output_stream(data) as out:
        out.write(b"rows")
    assert store.filesystem.get_file_info(data).size == 4
    prepared = S3Client.from_conf(secure.conf, "secure").prepared_create("k", b"x", "t")
    assert prepared is not None
    assert prepared.tls


def test_log_and_data_files_take_the_environments_proxy_to_a_private_certificate(
    secure: S3Endpoint, certificates: Path, no_aws: pytest.MonkeyPatch
) -> None:
    no_aws.setenv("AWS_CA_BUNDLE", str(certificates / "public.crt"))
    S3Client.from_conf(secure.conf, "proxied").sdk.create_bucket(Bucket="proxied")
    endpoint = f"https://{HOST}:{secure.url.rpartition(':')[2]}"
    conf = {**secure.conf, **QUICK, "spark.hadoop.fs.s3a.endpoint": endpoint}
    with ForwardProxy(secure.url) as proxy:
        no_aws.setenv("HTTPS_PROXY", proxy.url)
        write_arrow("s3a://proxied/t", {"id": [1, 2]}, conf=conf)
        log = DeltaLog.for_table("s3a://proxied/t", conf)
        assert log.snapshot.to_arrow().column("id").to_pylist() == [1, 2]
        assert {line.split(":")[0] for line in proxy.requests} == {f"CONNECT {HOST}"}
        no_aws.delenv("HTTPS_PROXY")
        with pytest.raises(OSError, match=HOST):
            S3ConditionalLogStore(conf).filesystem.get_file_info("proxied/t")
