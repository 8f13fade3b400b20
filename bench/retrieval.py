"""Measures the search and its verdicts on a development set: `python -m bench.retrieval --data FOLDER`.

The set (`zh_docs.jsonl`, `zh_queries.jsonl`) is third-party text for measuring only and is not part of this repository.
It runs the real parsers, ingestion and search on a PostgreSQL of its own; only
the vectors are kept between runs, in CACHE, for the local model needs minutes for them.
"""

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from alembic import command
from alembic.config import Config
from sqlalchemy import select

from app.agent.values import Sufficiency
from app.bootstrap import Container, build_container
from app.embedded import EmbeddedServices
from app.knowledge.ingestion import Ingestion
from app.knowledge.models import DocState, KnowledgeDoc
from app.knowledge.queries import document_row
from app.knowledge.retrieval import Explained, KnowledgeSearch
from app.knowledge.service import add_document
from app.llm.embedding import LocalEmbedder, Vector
from app.settings import ROOT, Settings

CACHE = Path(tempfile.gettempdir()) / "draftdesk-bench-vectors.npz"
DEPTH = 10
BASELINE = """beside it, on the same set, in a trial outside of PostgreSQL:
  vectors alone 0.718 / 0.904 / 0.794; RRF 60, depth 20  0.773 / 0.932 / 0.841; min-max 0.7/0.3  0.792 / 0.938 / 0.855
  multi-question all in 5: 0.55 unsplit, 0.74 split; verdict, pooled: AUC 0.835 (6 features), 0.887 (29 features)"""


class CachedEmbedder:
    """The local embedder with its vectors on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._model = LocalEmbedder(threads=2)
        self.name, self.dimensions = self._model.name, self._model.dimensions
        self._vectors: dict[str, Vector] = {}
        if path.exists():
            with np.load(path) as stored:
                self._vectors = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))
        self._known = len(self._vectors)

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors, each computed at most once for all runs."""
        return self._cached("query", texts, self._model.embed_queries)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors, each computed at most once for all runs."""
        return self._cached("passage", texts, self._model.embed_passages)

    def _cached(self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], list[Vector]]) -> list[Vector]:
        keys = {text: self._key(kind, text) for text in texts}
        for text, key in keys.items():
            if key not in self._vectors:
                self._vectors[key] = embed([text])[0]
        return [self._vectors[keys[text]] for text in texts]

    def save(self) -> None:
        """Keep the vectors for the next run."""
        if len(self._vectors) > self._known:
            np.savez(self._path, keys=np.array(list(self._vectors)), vectors=np.array(list(self._vectors.values())))

    def _key(self, kind: str, text: str) -> str:
        return hashlib.sha256(f"{self.name}\0{kind}\0{text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Case:
    """One query; `groups` are sets of document names of which one each must be found, none for an unanswerable one."""

    query: str
    category: str
    origin: str
    line: str
    fold: int
    groups: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the search made of a case: for each group the place of its first document among documents (0: not found)."""

    case: Case
    explained: Explained
    places: tuple[int, ...]


def main() -> None:
    """Run and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, required=True, help="the folder of the development set")
    arguments.add_argument("--fusion", choices=("minmax", "rrf"), default="minmax")
    arguments.add_argument("--line", choices=("bank", "shop"), default=None, help="one line's documents and questions")
    arguments.add_argument("--limit", type=int, default=None, help="only the first N queries")
    arguments.add_argument("--features", type=Path, default=None, help="also write features and labels, to fit a judge")
    given = arguments.parse_args()
    if not (given.data / "zh_docs.jsonl").exists():
        arguments.error(f"no development set in {given.data}")
    embedder = CachedEmbedder(CACHE)
    with _container() as container:
        try:
            names = _load(container, embedder, given.data, given.line)
        finally:
            embedder.save()
        settings = container.settings.model_copy(update={"retrieval_fusion": given.fusion})
        search = KnowledgeSearch(container.sessions, embedder, settings)
        outcomes = [_run(search, case, names) for case in _cases(given.data, given.line)[: given.limit]]
        embedder.save()
    _report(outcomes)
    if given.features:
        _write_features(outcomes, given.features)


@contextmanager
def _container() -> Iterator[Container]:
    with tempfile.TemporaryDirectory(prefix="dd-bench-") as folder:
        services = EmbeddedServices(Path(folder), durable=False)
        try:
            urls = services.start()
            config = Config(toml_file=ROOT / "pyproject.toml")
            config.attributes["database_url"] = urls.database_url
            command.upgrade(config, "head")
            container = build_container(
                Settings(_env_file=None, demo=True, database_url=urls.database_url, redis_url=urls.redis_url)
            )
            yield container
            container.engine.dispose()
        finally:
            services.stop()


def _load(container: Container, embedder: CachedEmbedder, data: Path, line: str | None) -> dict[UUID, str]:
    """Take in the documents and return their names by id."""
    ingestion = Ingestion(container.transaction, embedder)
    for row in _lines(data / "zh_docs.jsonl", line):
        # The tag keeps documents of equal text apart; it is not indexed.
        text = f"# {row['title']}\n\n{row['text']}".replace("\n", "\n\n")
        content = f"---\ntags: [{row['id']}]\n---\n{text}".encode()
        with container.transaction() as session:
            doc_id = add_document(session, name=f"{row['id']}.md", content=content, staff_id=None)
        while _unfinished(container, doc_id):
            ingestion.run(doc_id)
    with container.transaction() as session:
        rows = session.execute(select(KnowledgeDoc.id, KnowledgeDoc.name)).all()
    return {row.id: row.name.removesuffix(".md") for row in rows}


def _unfinished(container: Container, doc_id: UUID) -> bool:
    with container.transaction() as session:
        row = document_row(session, doc_id)
    if row.state is DocState.FAILED:
        sys.exit(f"{row.name} failed: {row.error}")
    return row.working


def _cases(data: Path, line: str | None) -> list[Case]:
    cases = []
    for row in _lines(data / "zh_queries.jsonl", line):
        expected = row["expected_doc_ids"]
        groups = expected if row["match"] == "all_groups" else [expected] if expected else []
        cases.append(
            Case(
                row["query"],
                row["category"],
                row["origin"],
                row["domain"],
                row["fold"],
                tuple(frozenset(group) for group in groups),
            )
        )
    return cases


def _run(search: KnowledgeSearch, case: Case, names: dict[UUID, str]) -> Outcome:
    explained = search.explain(case.query, DEPTH)
    found = list(dict.fromkeys(names[hit.candidate.doc_id] for hit in explained.hits))
    places = [next((at for at, name in enumerate(found, 1) if name in group), 0) for group in case.groups]
    return Outcome(case, explained, tuple(places))


def _report(outcomes: Sequence[Outcome]) -> None:
    by: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        case = outcome.case
        by[case.category].append(outcome)
        if case.category in ("exact_match", "paraphrase"):
            by["answerable"].append(outcome)
            by[f"{case.line}: {case.origin.split(':')[0]}"].append(outcome)
    print(f"{'':34s} {'n':>5s}  R@1    R@5    MRR10  all5   | sufficient  weak  insufficient")
    for name, rows in sorted(by.items()):
        print(f"{name:34s} {len(rows):5d}  {_ranking(rows)}  | {_verdicts(rows)}")
    _report_verdicts(outcomes)
    searched = sorted(outcome.explained.search_ms for outcome in outcomes)
    print(f"search without embedding, ms: median {statistics.median(searched):.1f}, p95 {_at(searched, 0.95):.1f}")
    print(BASELINE)


def _ranking(rows: Sequence[Outcome]) -> str:
    rows = [row for row in rows if row.places]
    if not rows:
        return " " * 26
    firsts = [min((place for place in row.places if place), default=0) for row in rows]
    one = statistics.mean(first == 1 for first in firsts)
    five = statistics.mean(sum(1 <= place <= 5 for place in row.places) / len(row.places) for row in rows)
    mrr = statistics.mean(1 / first if 0 < first <= 10 else 0.0 for first in firsts)
    every = statistics.mean(all(1 <= place <= 5 for place in row.places) for row in rows)
    return f"{one:.3f}  {five:.3f}  {mrr:.3f}  {every:.3f}"


def _verdicts(rows: Sequence[Outcome]) -> str:
    shares = [
        statistics.mean(row.explained.verdict.outcome is outcome for row in rows)
        for outcome in (Sufficiency.SUFFICIENT, Sufficiency.WEAK, Sufficiency.INSUFFICIENT)
    ]
    return "{:10.2f} {:5.2f} {:13.2f}".format(*shares)


def _report_verdicts(outcomes: Sequence[Outcome]) -> None:
    for line in ("bank", "shop", ""):
        rows = [row for row in outcomes if row.case.category != "ambiguous" and row.case.line.startswith(line)]
        yes = sorted(row.explained.verdict.probability for row in rows if row.case.groups)
        no = sorted(row.explained.verdict.probability for row in rows if not row.case.groups)
        if yes and no:
            kept = statistics.mean(value > _at(no, 0.9) for value in yes)
            text = f"AUC {_auc(yes, no):.3f}, answerable kept where 10 % of the unanswerable pass {kept:.2f}"
            print(f"verdict, {line or 'both lines':10s}: {text} (threshold {_at(no, 0.9):.2f})")


def _auc(yes: Sequence[float], no: Sequence[float]) -> float:
    one, other = np.asarray(yes)[:, None], np.asarray(no)[None, :]
    return float((one > other).mean() + 0.5 * (one == other).mean())


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _write_features(outcomes: Sequence[Outcome], path: Path) -> None:
    with path.open("w", encoding="utf-8") as out:
        for outcome in outcomes:
            for part in outcome.explained.parts:
                if part.judged is not None:
                    features = asdict(part.judged.features)
                    case = outcome.case
                    about = {"category": case.category, "line": case.line, "fold": case.fold, "origin": case.origin}
                    out.write(json.dumps({"query": case.query, **about, "features": features}) + "\n")


def _lines(path: Path, line: str | None) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(text) for text in lines]
    return [row for row in rows if line in (None, row["domain"])]


if __name__ == "__main__":
    main()
