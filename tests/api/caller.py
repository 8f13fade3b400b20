"""Calls the API the way another system does."""

from dataclasses import dataclass
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

GOOD = {"customer_id": "C-4711", "subject": "退款几天到", "content": "钱大概多久退回来？"}


@dataclass(frozen=True, slots=True)
class Caller:
    """A client with a bearer token."""

    client: FlaskClient
    token: str

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(f"/api/v1{path}", headers=self._headers(headers))

    def post(self, path: str, json: Any = None, **headers: str) -> TestResponse:
        return self.client.post(f"/api/v1{path}", json=json, headers=self._headers(headers))

    def post_bytes(self, path: str, data: bytes, content_type: str) -> TestResponse:
        return self.client.post(f"/api/v1{path}", data=data, content_type=content_type, headers=self._headers({}))

    def create(self, key: str = "order-4711", **changes: Any) -> TestResponse:
        return self.post("/tickets", GOOD | changes, Idempotency_Key=key)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return {"Authorization": f"Bearer {self.token}"} | named
