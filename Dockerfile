# The image of the worker: `python -m core.worker` and Microsoft's ODBC driver. docs/scale-out.md says when it is better than
# the function app.
FROM python:3.13.14-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl gnupg \
    && rm -rf /var/lib/apt/lists/*
# The key of Microsoft's repository, known by its fingerprint
RUN curl -fsSL --proto =https --output microsoft.asc https://packages.microsoft.com/keys/microsoft.asc \
    && gpg --show-keys --with-colons microsoft.asc | grep -q '^fpr:::::::::BC528686B50D79E339D3721CEB3E94ADBE1229CF:$' \
    && gpg --dearmor --output microsoft-prod.gpg microsoft.asc
COPY requirements-worker.txt ./
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --only-binary=:all: --requirement requirements-worker.txt

FROM python:3.13.14-slim-bookworm
COPY --from=build /build/microsoft-prod.gpg /usr/share/keyrings/microsoft-prod.gpg
COPY --from=build /venv /venv
# hadolint ignore=DL3008
RUN echo "deb [signed-by=/usr/share/keyrings/microsoft-prod.gpg] https://packages.microsoft.com/debian/12/prod bookworm main" \
        > /etc/apt/sources.list.d/microsoft-prod.list \
    && apt-get update \
    && ACCEPT_EULA=Y apt-get install --yes --no-install-recommends msodbcsql18 unixodbc \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY core ./core
COPY examples ./examples
COPY apps ./apps
COPY hubledger/__init__.py ./hubledger/
COPY sql ./sql
RUN python -m compileall -q core examples apps hubledger
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD ["python", "-m", "core.worker.health", "127.0.0.1:8080"]
ENTRYPOINT ["python", "-m", "core.worker"]
CMD ["--health", "0.0.0.0:8080"]
