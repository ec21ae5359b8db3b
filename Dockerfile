# syntax=docker/dockerfile:1
# Two stages: wheels are installed with their hashes in the first, the second holds only what runs.
FROM python:3.13-slim-bookworm AS build
WORKDIR /app
COPY requirements.lock .make/runtime_lock.py ./
# The development tools of the lock stay out.
RUN python runtime_lock.py requirements.lock >runtime.lock \
    && python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r runtime.lock

FROM python:3.13-slim-bookworm
# The programs that sandboxes on the host's own /usr need, as the bundled seeds require them.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        diffutils gawk git make procps python3 xz-utils \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home ratchet \
    && install -d -o ratchet -g ratchet /var/lib/ratchet
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    RATCHET_HOME=/var/lib/ratchet STATIC_ROOT=/app/staticfiles
WORKDIR /app
COPY --from=build /venv /venv
COPY manage.py ./
COPY evolution evolution
COPY sandbox sandbox
COPY webapp webapp
COPY templates templates
COPY static static
COPY seeds seeds
# Compiled once, for every process and health check that starts: the base image has no .pyc files.
RUN python -m compileall -q "$(python -c 'import os; print(os.path.dirname(os.__file__))')" . \
    && COLLECT_STATIC=on SECRET_KEY=only-for-this-step python manage.py collectstatic --noinput
USER ratchet
VOLUME /var/lib/ratchet
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "webapp.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--no-access-log", "--lifespan", "off"]
