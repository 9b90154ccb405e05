FROM node:20-bookworm-slim
ARG VERSION
RUN apt-get update && apt-get install --yes --no-install-recommends curl \
    && rm -rf /var/lib/apt/lists/*
RUN npm install --global --no-audit --no-fund "azurite@${VERSION}"
EXPOSE 10000
# Arrow speaks a newer version of the API than this Azurite knows.
CMD ["azurite-blob", "--silent", "--disableTelemetry", "--skipApiVersionCheck", \
     "--inMemoryPersistence", "--blobHost", "0.0.0.0", "--blobPort", "10000"]
