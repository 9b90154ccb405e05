# MinIO publishes no images any more: built from the sources of one commit.
FROM golang:1.26-bookworm AS build
ARG VERSION
RUN GOBIN=/out go install "github.com/minio/minio@${VERSION}"

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends curl ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/minio /usr/local/bin/minio
EXPOSE 9000
CMD ["minio", "server", "--quiet", "--address", ":9000", "/data"]
