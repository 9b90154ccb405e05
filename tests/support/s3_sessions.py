"""Temporary S3 credentials that may do less than their owner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.servers.minio import S3Endpoint


def restricted(endpoint: S3Endpoint, actions: list[str]) -> dict[str, str]:
    """The endpoint's conf with credentials for these actions alone (AssumeRole with a policy)."""
    from boto3.session import Session

    sts = Session().client(
        "sts",
        endpoint_url=endpoint.url,
        region_name=endpoint.region,
        aws_access_key_id=endpoint.access_key,
        aws_secret_access_key=endpoint.secret_key,
    )
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": actions, "Resource": ["arn:aws:s3:::*"]}],
    }
    reply = sts.assume_role(
        RoleArn="arn:minio:iam:::role/any", RoleSessionName="test", Policy=json.dumps(policy)
    )
    sts.close()
    found = reply["Credentials"]
    return {
        **endpoint.conf,
        "spark.hadoop.fs.s3a.access.key": found["AccessKeyId"],
        "spark.hadoop.fs.s3a.secret.key": found["SecretAccessKey"],
        "spark.hadoop.fs.s3a.session.token": found["SessionToken"],
    }
