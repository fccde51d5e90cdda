# rlgames on the CPU; docs/install.md says how to use it.
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        -c /src/constraints.txt '/src[figures]' \
    && rm -r /src
RUN useradd --create-home --uid 1000 player
USER player
WORKDIR /home/player
ENTRYPOINT ["rlgames"]
CMD ["--help"]
