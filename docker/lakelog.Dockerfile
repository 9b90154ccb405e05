# The command `lakelog` and `lakelog serve`, without Spark:
#
#     docker run --rm lakelog history s3a://lake/flights
#     docker run --volume lakelog:/run/lakelog lakelog serve --endpoint /run/lakelog/bridge
#
# `make release` builds it from the wheel that it has made; the folder is one with that wheel alone.
FROM python:3.13-slim-bookworm
COPY *.whl /tmp/wheel/
RUN wheel="$(echo /tmp/wheel/*.whl)" \
    && pip install --no-cache-dir "${wheel}[cli,ui,s3,gcs,azure,hdfs,fsspec,oss,oci,otel]" \
    && rm -r /tmp/wheel \
    && useradd --create-home --uid 1000 lakelog \
    && install --directory --owner lakelog --mode 0700 /run/lakelog
# The service speaks to processes of its own user alone: a JVM beside it runs under this number, too.
USER 1000
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["lakelog"]
CMD ["--help"]
