"""The files: the same bytes from the same records, figures for what there are records for, tables without altair."""

import random
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paper_records import draw_no_pixels, everything, one_kind_each, reference, scores, search

from fairbits.lab.paper import LATEX_HEAD, paper_sections, write_lab_report, write_paper
from fairbits.lab.paper.biased_images import contact_sheet, png
from fairbits.lab.paper.latex_tables import latex
from fairbits.lab.paper.method_pictures import standard_error
from fairbits.lab.paper.paper_style import mark_of
from fairbits.lab.paper.record_frames import mean_points, tuned_scores
from fairbits.lab.paper.tuned_methods import without_far_constant
from fairbits.lab.run_records import append_record, read_runs
from fairbits.report.wording import markdown

COMPAS = ("complexity", "plane", "representation", "stability", "tradeoff", "tuned")
NAMES = ["biased-mnist", "biased-mnist-accuracy", *(f"compas-{part}" for part in COMPAS)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "deep"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRBITS_DATA", str(folder))  # MNIST is not there, and must not be fetched
        files = write_paper(everything(), folder)
    return folder, files


def test_it_writes_tables_and_a_figure_for_each_part(written):
    folder, files = written
    assert sorted(file.name for file in folder.iterdir()) == sorted(file.name for file in files)
    figures = [f"{name}.{ending}" for name in NAMES for ending in ("png", "svg")]
    assert {file.name for file in files} == {"tables.md", "tables.tex", *figures}
    for name in NAMES:
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert f"]({name}.png)" in (folder / "tables.md").read_text()


def test_neither_order_nor_origin_of_the_records_changes_a_byte(written, tmp_path, monkeypatch):
    _, files = written
    monkeypatch.setenv("FAIRBITS_DATA", str(tmp_path))
    draw_no_pixels(monkeypatch)  # they are drawn of the same chart
    records = [*everything(), *everything()]  # every line written twice
    random.Random(0).shuffle(records)
    for record in records:
        record["made"] = {"date": "2030-12-31", "seconds": random.random()}
    again = write_paper(records, tmp_path / "again")
    assert [file.name for file in again] == [file.name for file in files]
    for file in (file for file in files if file.suffix != ".png"):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


def test_the_published_tables_are_those_of_the_published_records():
    (folder,) = (Path(__file__).parents[2] / "results").glob("????-??-??_*")
    sections = paper_sections(read_runs(folder / "records.jsonl"))
    tables = [table for section in sections for table in section.tables]
    assert (folder / "tables.tex").read_text() == "\n\n".join([LATEX_HEAD, *map(latex, tables)]) + "\n"
    words = (folder / "tables.md").read_text()
    assert [table.title for table in tables if markdown(table) not in words] == []


LEAST = ("search of a code", "refits of a code", "bound", "images")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in LEAST else pytest.mark.slow) for kind in one_kind_each()]
)
def test_one_kind_of_run_alone_has_tables_figures_and_a_page(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRBITS_DATA", str(tmp_path))
    draw_no_pixels(monkeypatch)
    records = one_kind_each()[kind]
    for record in records:
        append_record(tmp_path / "records.jsonl", record)
    names = [file.name for file in write_lab_report(tmp_path)]
    assert names[:2] == ["tables.md", "tables.tex"]
    assert names[-1] == "report.html"
    figures = [name for name in names if name.endswith(".png")]
    bare = ("bound", "common seeds", "domain")  # tables alone; a frontier is drawn beneath tuned methods
    assert bool(figures) == (kind not in bare)
    assert ("compas-representation.png" in figures) == kind.startswith(("logistic", "search"))
    tables = (tmp_path / "tables.md").read_text()
    assert records[0]["run"]["name"] in tables
    if kind.startswith("search"):  # one fold of one method
        assert figures == ["compas-tuned.png", "compas-tradeoff.png", "compas-representation.png"]
        assert "±" not in tables.split("Mean over")[0]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml") == len(figures)


def test_without_records_there_is_a_sentence(tmp_path):
    assert [file.name for file in write_paper([], tmp_path)] == ["tables.md", "tables.tex"]
    assert (tmp_path / "tables.md").read_text() == "No records yet.\n"


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_without_what_draws_there_are_tables_and_a_sentence(package, tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("fairbits.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    from fairbits.lab import paper

    files = paper.write_paper(everything(), tmp_path)
    assert [file.name for file in files] == ["tables.md", "tables.tex"]
    assert "extra 'report'" in capsys.readouterr().err
    assert ".png" not in (tmp_path / "tables.md").read_text()


def test_the_constant_predictor_is_left_out_where_it_would_take_the_picture():
    far = [search("BinaryMI", fold, scores(0.9 + 0.01 * fold, 0.1)) for fold in range(2)]
    near = [search("AdvCls", 0, scores(0.55, 0.1))]
    constant = [reference("constant", 0, scores(0.5, 0.0))]
    assert "constant" not in set(without_far_constant(tuned_scores([*far, *constant])).method)
    assert "constant" in set(without_far_constant(tuned_scores([*far, *near, *constant])).method)
    assert len(without_far_constant(tuned_scores(constant))) == 1


def test_error_bars_end_within_0_and_1():
    found = mean_points(tuned_scores([search("BinaryMI", fold, scores(0.5 * fold, 0.0)) for fold in range(3)]), "auc")
    assert found.iloc[0].tolist() == ["BinaryMI", 0.5, 0.0, 1.0]


def test_marks_of_methods_differ_and_do_not_depend_on_their_order():
    names = ["x", "Parity", "c", "a", "BinaryMI", "d", "b"]
    marks = mark_of(names)
    assert list(marks) == ["BinaryMI", "Parity", "a", "b", "c", "d", "x"]
    assert len(set(marks.values())) == 7
    assert mark_of(["Parity"])["Parity"] == marks["Parity"]


def test_the_image_file_holds_the_pixels():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    file = png(pixels)
    assert struct.unpack(">II", file[16:24]) == (7, 5)
    start = file.index(b"IDAT")
    (size,) = struct.unpack(">I", file[start - 4 : start])
    lines = np.frombuffer(zlib.decompress(file[start + 4 : start + 4 + size]), np.uint8).reshape(5, 22)
    np.testing.assert_array_equal(lines[:, 1:].reshape(5, 7, 3), pixels)
    assert not lines[:, 0].any()


def test_the_sheet_has_a_column_per_digit():
    labels = np.tile(np.arange(10), 6)
    images = np.broadcast_to(labels[:, None, None, None].astype(np.uint8), (60, 3, 4, 4))
    sheet = contact_sheet(images, labels)
    assert sheet.shape == (5 * 6, 10 * 6, 3)
    assert [sheet[0, 6 * digit, 0] for digit in range(10)] == list(range(10))


def test_the_ellipse_is_one_standard_error_in_every_direction():
    points = pd.DataFrame(
        np.random.default_rng(0).normal(size=(5, 2)) @ [[0.02, 0.01], [0, 0.03]], columns=["fair", "auc"]
    )
    around = standard_error(points)[["fair", "auc"]].to_numpy() - points.mean().to_numpy()
    for direction in np.random.default_rng(1).normal(size=(20, 2)):
        error = (points @ direction).sem()
        assert (around @ direction).max() == pytest.approx(error, rel=0.01)
    assert standard_error(points.head(1)).empty
