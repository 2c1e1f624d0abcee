# An image of the executable that scripts/build makes: `scripts/build && docker build --tag sds .`
# BASE is Google's distroless/base: it has libc and certificates, and no shell. Pull it from its registry, or name it:
# `docker build --build-arg BASE=…`
ARG BASE=distroless/base-debian12:nonroot
FROM ${BASE}
COPY --chmod=755 dist/sds /usr/bin/sds
ENV SDS_DATA=/home/nonroot/data SDS_HOST=0.0.0.0
VOLUME /home/nonroot
EXPOSE 8080
HEALTHCHECK --start-period=10s CMD ["/usr/bin/sds", "status"]
ENTRYPOINT ["/usr/bin/sds"]
CMD ["serve"]
