# The container image. Build it in the root of the checkout:
# docker build -t REGISTRY/bindery:0.1.0 .
FROM rust:1.95-slim-bookworm AS builder
# jemalloc, the memory allocator, is built with make.
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# What `bindery version` prints: --build-arg BINDERY_COMMIT=$(git rev-parse --short=12 HEAD).
ARG BINDERY_COMMIT=""
# Locked, so that the image contains the versions that were tested.
RUN cargo build --release --locked -p bindery

# The C library of the Debian release in the builder, without a shell or package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=builder /src/target/release/bindery /bindery
# Numeric, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/bindery"]
CMD ["controller"]
