# docker build -t harrow . && docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" harrow run campaigns/
FROM python:3.13-slim AS build
# harrow reads its version from git. Any version of git will do.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY requirements/build.txt requirements/build.txt
RUN pip install --no-cache-dir --require-hashes --no-deps --requirement requirements/build.txt
COPY . .
RUN python -m hatchling build --target wheel --directory /dist

FROM python:3.13-slim
COPY requirements/run.txt /tmp/run.txt
RUN pip install --no-cache-dir --require-hashes --no-deps --requirement /tmp/run.txt \
    && rm /tmp/run.txt \
    && useradd --system --uid 10001 --create-home harrow
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    pip install --no-cache-dir --no-deps /dist/*.whl
USER 10001
WORKDIR /work
ENTRYPOINT ["harrow"]
CMD ["--help"]
