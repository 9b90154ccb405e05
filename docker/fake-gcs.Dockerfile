FROM golang:1.26-bookworm AS build
ARG VERSION
RUN GOBIN=/out go install "github.com/fsouza/fake-gcs-server@${VERSION}"

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends curl \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/fake-gcs-server /usr/local/bin/fake-gcs-server
EXPOSE 4443
# It sends clients of resumable uploads to the address that it is told here.
CMD ["fake-gcs-server", "-scheme", "http", "-host", "0.0.0.0", "-port", "4443", \
     "-backend", "memory", "-public-host", "127.0.0.1:4443", \
     "-external-url", "http://127.0.0.1:4443", "-log-level", "error"]
