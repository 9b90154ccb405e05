"""The tokens of a text: where they are, and what is between them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lakelog.spark.sql_statements.text.tokens import tokenize

WORDS = ["SELECT", "from", "a1", "_x", "é", "1a"]
QUOTED = ["`a b`", "`a``b`", "`it's -- /* \"`", "``"]
STRINGS = ["'a'", "'it''s'", r"'it\'s `x`'", '"a -- b"', '"x""y"', r"r'\'", "X'00FF'", "'/* */'"]
NUMBERS = ["1", "1.5", ".5", "1e10", "3L", "1.5BD"]
SYMBOLS = ["(", ")", ",", ";", "<=>", "<>", "=", "::", "->", "?", ":", "*", "{", "}"]
COMMENTS = ["-- to the end\n", "/* a */", "/* a /* nested 'x */ ` */", "/*+ HINT(a) */", "--\n"]
KINDS = {"word": WORDS, "quoted": QUOTED, "string": STRINGS, "number": NUMBERS, "symbol": SYMBOLS}
PIECES = st.one_of(
    *(st.tuples(st.just(kind), st.sampled_from(texts)) for kind, texts in KINDS.items()),
    st.tuples(st.just("comment"), st.sampled_from(COMMENTS)),
)


@given(st.lists(PIECES, max_size=12), st.sampled_from([" ", "\n", "\t", " \r\n "]))
def test_pieces_come_back_as_tokens_and_comments_are_none(
    pieces: list[tuple[str, str]], space: str
) -> None:
    sql = space.join(text for _, text in pieces)
    found = [(token.kind, token.text) for token in tokenize(sql)]
    assert found == [piece for piece in pieces if piece[0] != "comment"]


@given(st.text(alphabet="ab1`'\"-/*+$r\\\n .(),;<=>:é"))
def test_any_text_is_tokens_and_what_is_no_token_is_space_or_a_comment(sql: str) -> None:
    at = 0
    for token in tokenize(sql):
        assert sql[token.start : token.end] == token.text
        _assert_blank(sql[at : token.start])
        at = token.end
    _assert_blank(sql[at:])


def _assert_blank(between: str) -> None:
    while (shorter := re.sub(r"/\*(?:(?!/\*|\*/).)*\*/", " ", between, flags=re.DOTALL)) != between:
        between = shorter
    assert not re.sub(r"--(?:\\\n|[^\n\r])*", "", between).strip()


def test_what_never_ends_is_one_broken_token() -> None:
    for sql in ("a 'b c", "a \"b ' c", "a `b c", "a /* b /* c */ d"):
        assert [(each.kind, each.start) for each in tokenize(sql)] == [("word", 0), ("broken", 2)]


def test_names_lose_their_backticks_and_strings_are_no_names() -> None:
    assert [each.name for each in tokenize("a `b``c` 'd' 1 *")] == ["a", "b`c", None, None, None]
