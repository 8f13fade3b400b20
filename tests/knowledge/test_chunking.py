"""The chunker's promises, on documents that nobody would think of."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.chunking import LARGEST, OVERLAP, ROW_LIMIT, SECTION_LIMIT, TARGET, Piece, chunk
from app.knowledge.parsers.blocks import Block, BlockKind, Parsed

sentences = st.text(st.sampled_from("退款到账优惠券会员abc 12，"), min_size=1, max_size=120).map(
    lambda s: f"{s.strip()}。"
)
block_texts = st.one_of(
    st.lists(sentences, min_size=1, max_size=12).map("".join),
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=1_500).map(lambda s: s.strip() or "x"),
)
blocks = st.lists(
    st.builds(
        Block,
        st.sampled_from(list(BlockKind)),
        block_texts,
        st.sampled_from([(), ("一",), ("一", "二"), ("三",)]),
    ),
    min_size=1,
    max_size=12,
)


def section_texts(parsed: Parsed) -> list[tuple[str, str]]:
    """The text of each stretch of blocks under one heading, in order."""
    sections: list[tuple[str, str]] = []
    for block in parsed.blocks:
        heading = " > ".join(block.headings)
        if sections and sections[-1][0] == heading:
            sections[-1] = (heading, f"{sections[-1][1]}\n{block.text}")
        else:
            sections.append((heading, block.text))
    return sections


@given(blocks)
def test_pieces_cover_every_section_in_order_and_add_nothing(content: list[Block]) -> None:
    parsed = Parsed("题", tuple(content))
    pieces = iter(chunk(parsed))
    piece = next(pieces, None)
    for heading, text in section_texts(parsed):
        covered = 0
        while piece is not None and piece.heading == heading and covered < len(text):
            at = text.find(piece.text, max(0, covered - len(piece.text) + 1))
            assert at >= 0, "a piece is verbatim and goes on beyond the one before it"
            assert not text[covered:at].strip(), "nothing is left out between pieces"
            covered = at + len(piece.text)
            piece = next(pieces, None)
        assert covered == len(text)
    assert piece is None


@given(blocks)
def test_sizes_stay_within_bounds(content: list[Block]) -> None:
    for piece in chunk(Parsed("题", tuple(content))):
        assert piece.text in piece.section
        assert len(piece.section) <= max(SECTION_LIMIT, len(piece.text))
        longest_row = max((len(b.text) for b in content if b.kind is BlockKind.TABLE_ROW), default=0)
        assert len(piece.text) <= max(LARGEST, min(ROW_LIMIT, longest_row) + TARGET)


@given(st.lists(block_texts, min_size=1, max_size=8))
def test_table_rows_are_never_cut(rows: list[str]) -> None:
    rows = [row for row in rows if len(row) <= ROW_LIMIT and "\n" not in row]
    parsed = Parsed("表", tuple(Block(BlockKind.TABLE_ROW, row) for row in rows))

    lines = [line for piece in chunk(parsed) for line in piece.text.split("\n")]

    assert [line for line in lines if line] == [row for row in rows if row]


def test_a_long_paragraph_is_slid_over_at_sentence_ends() -> None:
    sentence = "这是第{}句，它说的是退款需要三到五个工作日才会到账。"
    text = "".join(sentence.format(number) for number in range(60))

    pieces = chunk(Parsed("题", (Block(BlockKind.PARAGRAPH, text),)))

    assert len(pieces) > 3
    assert all(piece.text.endswith("。") and piece.text.startswith("这是第") for piece in pieces)
    assert all(len(piece.text) >= 100 for piece in pieces)
    for one, following in pairwise(pieces):
        shared = next(size for size in range(OVERLAP, -1, -1) if one.text.endswith(following.text[:size]))
        assert 0 < shared <= OVERLAP


def test_each_question_with_its_answer_is_a_piece() -> None:
    pairs = [Block(BlockKind.QUESTION_ANSWER, f"问：第{n}个问题？\n答：第{n}个回答。", ("问答",)) for n in range(4)]

    pieces = chunk(Parsed("题", tuple(pairs)))

    assert [piece.text for piece in pieces] == [pair.text for pair in pairs]
    assert {piece.section for piece in pieces} == {"\n".join(pair.text for pair in pairs)}


def test_pieces_never_cross_a_heading() -> None:
    parsed = Parsed("题", (Block(BlockKind.PARAGRAPH, "甲。", ("一",)), Block(BlockKind.PARAGRAPH, "乙。", ("二",))))

    assert chunk(parsed) == [Piece("一", "甲。", "甲。"), Piece("二", "乙。", "乙。")]


def test_list_items_of_a_long_list_stay_whole() -> None:
    items = [f"- 第{number}项：" + "说明文字" * 15 + "。" for number in range(20)]

    pieces = chunk(Parsed("题", tuple(Block(BlockKind.LIST_ITEM, item) for item in items)))

    assert [line for piece in pieces for line in piece.text.split("\n")] == items
    assert all(len(piece.text) <= TARGET for piece in pieces)
