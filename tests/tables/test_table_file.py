"""Tables from files: what is read as what, and a sentence for each file that cannot be."""

import gzip

import numpy as np
import pandas as pd
import pytest

from fairbits.tables import table_file as files
from fairbits.tables.file_formats import HEAD_BYTES, SeparatorError, TextEncodingError, write_table
from fairbits.tables.table_file import MISSING, TableFile

ROWS = "sex,age,approved\nF,30,1\nM,40,0\nF,50,1\n"


def read_file(path, **options):
    return TableFile(path, **options).read()


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_found(write, separator):
    table = read_file(write(ROWS.replace(",", separator)))
    assert list(table.frame.columns) == ["sex", "age", "approved"]
    assert table.frame.age.tolist() == [30, 40, 50]
    assert bool(table.notes) == (separator != ",")


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + ROWS.encode(),
        ROWS.encode("utf-16"),
        ROWS.replace("\n", "\r\n").encode(),
        ROWS.replace(",age,", ", age ,").encode(),
        (ROWS + "\n\n").encode(),
    ],
    ids=["byte-order mark", "UTF-16", "CRLF", "spaces around names", "empty lines"],
)
def test_harmless_differences_are_harmless(write, content):
    frame = read_file(write(content)).frame
    assert list(frame.columns) == ["sex", "age", "approved"]
    assert frame.sex.tolist() == ["F", "M", "F"]


def test_compressed_and_parquet_files_are_read(write, tmp_path):
    expected = read_file(write(ROWS)).frame
    pd.testing.assert_frame_equal(read_file(write(gzip.compress(ROWS.encode()), "t.csv.gz")).frame, expected)
    expected.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_file(tmp_path / "t.parquet").frame, expected)


def test_an_encoding_can_be_given(write):
    file = write("name,sex\nJosé,F\nAnna,F\n".encode("latin-1"))
    assert read_file(file, encoding="latin-1").frame.name[0] == "José"


def test_quoted_separators_do_not_count(write):
    frame = read_file(write('job,y\n"clerk, senior; old",1\n"a;b;c",0\n')).frame
    assert frame.job.tolist() == ["clerk, senior; old", "a;b;c"]


def test_a_decimal_comma_is_found_and_said(write):
    content = "a;b;c\n1,5;x;3\n-0,25;y;4\n1,125;z;5\n"
    table = TableFile(write(content))
    assert table.read().frame.a.tolist() == [1.5, -0.25, 1.125]
    assert table.read().frame.c.tolist() == [3, 4, 5]
    assert [piece.a.tolist() for piece in table.pieces(["a"])] == [[1.5, -0.25, 1.125]]
    assert "Numbers have a decimal comma." in table.notes


@pytest.mark.parametrize("content", ["a;b\n1,125;x\n2,500;y\n", "a;b\n1,5;0.5\n2,5;0.7\n"], ids=["thousands", "both"])
def test_a_comma_that_may_be_something_else_is_left_alone(write, content):
    assert read_file(write(content)).frame.a.tolist() == [line.split(";")[0] for line in content.splitlines()[1:]]


def test_texts_that_may_be_meant_as_numbers_or_dates_are_named(write):
    rows = "".join(f"{i},18/03/20{10 + i},word {i}\n" for i in range(20))
    notes = read_file(write("pay,hired,other\n" + rows + "EUR 7,19/03/2030,word\n,,\n")).notes
    assert len(notes) == 2
    assert "pay is read as text: 1 of 21 values are not numbers, the first in row 21." in notes[0]
    assert notes[1] == "hired is read as text. If it is a date, write it as 2026-01-31."
    assert "EUR" not in notes[0]  # what stands in a cell is not for the model card


@pytest.mark.parametrize(
    ("value", "named"), [("1,234.50 €", True), ("$12", True), ("12 %", True), ("1.234,5", True), ("A12", False)]
)
def test_numbers_with_signs_around_them_are_named(write, value, named):
    notes = read_file(write("a;b\n" + f"{value};x\n" * 20)).notes
    assert any("20 of 20 values are not numbers" in note for note in notes) == named


@pytest.mark.parametrize(
    ("value", "named"),
    [("31.1.26", True), ("01/31/2026 10:30", True), ("2026/01/31", True), ("123-45-6789", False), ("1.2.3", False)],
)
def test_dates_of_other_kinds_are_named(write, value, named):
    notes = read_file(write("a,b\n" + f"{value},x\n" * 20)).notes
    assert bool(notes) == named


def test_dates_are_dates_and_said(write):
    rows = "".join(f"2024-0{1 + i % 9}-11,2024-01-01T10:00:00,{i},12/31/2024\n" for i in range(20))
    table = read_file(write("day,time,n,american\n" + rows))
    assert [str(t)[:10] for t in table.frame.dtypes] == [
        "datetime64",
        "datetime64",
        "int64",
        str(table.frame.american.dtype)[:10],
    ]
    assert "day, time" in table.notes[0]
    assert "american" not in table.notes[0]


def test_numbers_too_large_for_64_bits_are_numbers(write):
    frame = read_file(write("id,y\n123456789012345678901234567890,1\n5,0\n")).frame
    assert frame.id.tolist() == [123456789012345678901234567890.0, 5.0]


def test_infinities_and_mixed_types_are_read(write):
    frame = read_file(write("a,b\ninf,1\n-inf,x\n2,3\n")).frame
    assert np.isinf(frame.a[:2]).all()
    assert frame.b.tolist() == ["1", "x", "3"]


BAD = {
    "nothing": (b"", "t.csv", "is empty"),
    "blanks": (b" \n\n", "t.csv", "is empty"),
    "names only": (b"a,b\n", "t.csv", "but no rows"),
    "one column": (b"a\n1\n2\n", "t.csv", "one column only"),
    "another separator": (b"a:b\n1:2\n", "t.csv", "Pass separator="),
    "duplicate names": (b"a,b,a\n1,2,3\n", "t.csv", "more than one column named 'a'"),
    "duplicate names after blanks": (b"a,b, a\n1,2,3\n", "t.csv", "more than one column named 'a'"),
    "no name": (b"a,,c\n1,2,3\n", "t.csv", "Column 2 of"),
    "no names": (b"1,2,3\n4,5,6\n", "t.csv", "holds numbers, not names"),
    "ragged": (
        b"a,b\n" + b"1,2\n" * 60 + b"1,2,3\n",
        "t.csv",
        "Expected 2 fields in line 62, saw 3",
    ),
    "not UTF-8": ("a,b\nJosé,1\n".encode("latin-1"), "t.csv", "is not UTF-8 text .* encoding='latin-1'"),
    "Excel": (b"PK\x03\x04" + bytes(100), "t.csv", "an Excel or zip file"),
    "old Excel": (b"\xd0\xcf\x11\xe0" + bytes(100), "t.csv", "an old Excel file"),
    "binary": (bytes(range(256)) * 4, "t.csv", "holds binary data"),
    "PDF": (b"%PDF-1.7 ...", "t.csv", "is a PDF"),
    "unclosed quote": (b'a,b\n"1,2\n3,4\n', "t.csv", "a quote that is never closed"),
    "not Parquet": (b"a,b\n1,2\n", "t.parquet", "not a readable Parquet"),
    "another ending": (b"a,b\n1,2\n", "t.docx", "does not end in any of .csv"),
    "not gzip": (b"a,b\n1,2\n", "t.csv.gz", "is not compressed"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_a_sentence(write, name):
    content, file, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        read_file(write(content, file))


def test_no_file_and_a_folder_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_file(tmp_path)


def test_an_unknown_encoding_gets_a_sentence(write):
    with pytest.raises(ValueError, match="encoding='klingon' is unknown"):
        read_file(write(ROWS), encoding="klingon")


def test_a_front_end_finds_the_encoding_and_the_separator_in_the_error(write):
    file = write("a,b\nJosé,1\n".encode("latin-1"))
    with pytest.raises(TextEncodingError, match="is not UTF-8 text"):
        read_file(file)
    with pytest.raises(SeparatorError, match="Its first line is 'a:b'"):
        read_file(write("a:b\n1:2\n"))
    with pytest.raises(ValueError, match="single character") as long:
        read_file(write(ROWS), separator="::")
    assert (long.value.argument, long.value.value) == ("separator", "::")


def wide(rows, **columns):
    """Return a table that pandas parses in several parts: a column may look different in each."""
    frame = pd.DataFrame({f"x{i}": np.arange(rows) % 10 for i in range(60)})
    return frame.assign(**columns).to_csv(index=False)


def test_a_column_that_is_text_in_one_part_of_a_file_is_text_in_all(write):
    n = 40_000
    late = ["7"] * (n - 1) + ["seven"]
    truth = ["True"] * (n // 2) + ["1"] * (n // 2)
    whole, floats = ["12345678901234567890123"] + ["5"] * (n - 1), ["1"] * (n - 1) + ["0.5"]
    frame = read_file(write(wide(n, late=late, truth=truth, whole=whole, floats=floats))).frame
    assert frame.late.tolist() == late
    assert frame.truth.tolist() == truth
    assert frame.whole.tolist()[:2] == [12345678901234567890123.0, 5.0]
    assert frame.floats.dtype == np.float64
    assert frame.x3.dtype == np.int64


def test_pieces_are_the_table(write, monkeypatch):
    monkeypatch.setattr(files, "PIECE_ROWS", 4)
    content = "id,sex,age\n" + "".join(f"00{i},{'FM'[i % 2]},{i}\n" for i in range(10)) + "NA,NA,NA\n"
    table = TableFile(write(content))
    pieces = list(table.pieces(["age"], texts=["sex"], verbatim=["id"]))
    assert [len(piece) for piece in pieces] == [4, 4, 3]
    frame = pd.concat(pieces)
    assert list(frame.columns) == ["age", "sex", "id"]
    assert frame.id.tolist() == [*(f"00{i}" for i in range(10)), "NA"]
    assert frame.sex.isna().tolist() == [False] * 10 + [True]
    assert frame.age.sum() == 45


def test_what_is_missing_is_what_pandas_takes_for_missing():
    assert set(MISSING) == set(pd._libs.parsers.STR_NA_VALUES)


def test_a_wrong_byte_is_found_wherever_it_is(write):
    good = ROWS.encode() * 50_000
    with pytest.raises(ValueError, match=rf"byte {len(good) + 2} is 0xe9"):
        read_file(write(good + b"ab\xe9c,1,2\n"))
    start = b"name,n\n"
    before = start + b"abc,1\n" * ((HEAD_BYTES - len(start)) // 6)
    before += b"a" * (HEAD_BYTES - len(before) - 1)
    split = before + "\u20ac,2\n".encode()  # over the end of a block
    assert read_file(write(split)).frame.name.iloc[-1].endswith("\u20ac")


def test_a_field_without_end_is_a_sentence(write):
    with pytest.raises(ValueError, match="never closed"):
        read_file(write('a,b\n"' + "x,1\n" * 60_000))
    with pytest.raises(ValueError, match="never closed"):
        read_file(write('"a,b\n' + "x" * 200_000 + ",1\n"), separator=",")


def test_parquet_indices_and_nested_columns(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=pd.Index(["p", "q"]))
    frame.to_parquet(tmp_path / "t.parquet")
    assert list(read_file(tmp_path / "t.parquet").frame.columns) == ["a", "b"]
    frame.assign(c=[[1], [2, 3]]).to_parquet(tmp_path / "n.parquet")
    with pytest.raises(ValueError, match=r"Column 'c' of .* holds lists or records"):
        read_file(tmp_path / "n.parquet")


def test_a_separator_that_is_no_character(write):
    with pytest.raises(ValueError, match="must be a single character"):
        read_file(write(ROWS), separator="::")


def test_a_space_separates_only_where_nothing_else_does(write):
    spaced = read_file(write("a b c\n" + "1 x 2\n" * 30))
    assert list(spaced.frame.columns) == ["a", "b", "c"]
    assert spaced.notes == ["Columns are separated by space."]
    named = read_file(write("full name,home town\n" + "Ann Lee,New York\n" * 30))
    assert list(named.frame.columns) == ["full name", "home town"]


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
HARMLESS = ["-5", "+3.25", "-1,5", "-2e-3", "a=b", "", "'=1"]


@pytest.mark.parametrize("safe", [False, True])
def test_formulas_are_made_harmless_on_request_and_numbers_stay(tmp_path, safe):
    texts = (FORMULAS if safe else FORMULAS[:-1]) + HARMLESS  # a carriage return needs the quotes of safe cells
    frame = pd.DataFrame({"=name": texts, "n": -np.arange(1.0, len(texts) + 1), "c": pd.Categorical(texts)})
    write_table(tmp_path / "t.csv", [frame[:4], frame[4:]], safe_cells=safe)
    read = pd.read_csv(tmp_path / "t.csv", dtype={"=name": str, "'=name": str, "c": str}, keep_default_na=False)
    assert read.columns.tolist() == ["'=name" if safe else "=name", "n", "c"]
    assert read.n.tolist() == frame.n.tolist()
    expected = [f"'{text}" if safe and text in FORMULAS else text for text in texts]
    assert read.iloc[:, 0].tolist() == read.c.tolist() == expected
