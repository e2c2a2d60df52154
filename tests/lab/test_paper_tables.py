"""What the tables say, cell by cell, and how they are spelt."""

import re

import pytest
from paper_records import drawn, everything, image, plane, reference, scores, search

from fairbits.lab.paper import PARTS
from fairbits.lab.paper.biased_images import biased_mnist
from fairbits.lab.paper.information_paths import plane as plane_sections
from fairbits.lab.paper.latex_tables import escape, latex
from fairbits.lab.paper.tuned_methods import representation, tradeoff
from fairbits.report.wording import Table, markdown

SPECIAL = Table(
    "odd", "100 % of $x_i^2$ & ~more", ("[a]", "b*"), (("-0.1 ± 0.2", "µ \\ #1 {x}"), ("[1]", "a|b")), ("Note 5 %.",)
)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("a & b", r"a \& b"),
        ("50 %", r"50 \%"),
        ("x_1 #2 $3", r"x\_1 \#2 \$3"),
        ("{a}", r"\{a\}"),
        ("a\\b", r"a\textbackslash{}b"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("0.1 ± 0.2 –", r"0.1 $\pm$ 0.2 --"),
        ("AUC ↑", r"AUC $\uparrow$"),
        ("-0.5", "$-$0.5"),
        ("one-draw, 1-GPA, 1-2", "one-draw, 1-GPA, 1-2"),
        ("a < b | c", "a $<$ b $|$ c"),
        ("[x]*", "{[}x{]}{*}"),
        ("naïve", "na(U+00EF)ve"),
    ],
)
def test_latex_spells_what_it_would_take_for_commands(text, spelling):
    assert escape(text) == spelling


def test_latex_is_plain_ascii_with_balanced_braces_and_full_rows():
    tables = [SPECIAL, *(table for part in PARTS for section in part(everything()) for table in section.tables)]
    for text, table in ((latex(table), table) for table in tables):
        assert text.isascii()
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        rows = re.search(r"\\toprule\n(.*)\\bottomrule", text, re.S)[1].replace("\\midrule\n", "").splitlines()
        assert len(rows) == 1 + len(table.rows)
        for row in rows:
            assert row.endswith(r" \\")
            assert len(re.findall(r"(?<!\\)&", row)) == len(table.head) - 1
        assert len(re.search(r"\\begin{tabular}{(l+r*)}", text)[1]) == len(table.head)
        assert ("resizebox" in text) == (len(table.head) > 6)


def test_tables_have_a_cell_for_every_column():
    for table in (table for part in PARTS for section in part(everything()) for table in section.tables):
        assert {len(row) for row in table.rows} == {len(table.head)}
        lines = [line for line in markdown(table).splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.head) + 1}


def test_markdown_keeps_pipes_inside_their_cell_and_brackets_from_being_links():
    assert r"| \[1\] | a\|b |" in markdown(SPECIAL)


def tables_of(records):
    return {table.name: table for section in tradeoff(records) for table in section.tables}


def test_scores_by_hand():
    records = [search("BinaryMI", fold, scores(0.7 + 0.01 * fold, 0.1, **drawn(0.6, 0.05))) for fold in range(3)]
    records += [search("AdvCls", 0, scores(0.7, 0.05)), reference("logistic regression", 0, scores(0.72, 0.25))]
    rows = tables_of(records)["compas-scores"].rows
    assert [row[0] for row in rows] == ["logistic regression", "AdvCls", "BinaryMI"]
    assert rows[2] == (
        *(
            "BinaryMI",
            "3",
            "0.710 ± 0.025",
            "0.100 ± 0.000",
            "0.020 ± 0.000",
            "0.050 ± 0.000",
        ),  # 4.303 * 0.01 / sqrt(3)
        *("0.600 ± 0.000", "0.050 ± 0.000", "0.0123 ± 0.0000", "0.390 ± 0.025", "0.310 ± 0.025"),
        *("0.450 ± 0.000", "2.590 ± 0.025"),
    )
    assert rows[1][2:9] == ("0.700", "0.050", "0.020", "0.050", "–", "–", "–")


def test_differences_name_both_methods_and_who_is_ahead():
    near = [search("BinaryMI", fold, scores(0.7 + 0.01 * fold, 0.1)) for fold in range(3)]
    far = [search("VFAE", fold, scores(0.6, 0.1)) for fold in range(3)]
    rows = tables_of([*near, *far])["compas-differences"].rows
    assert rows == (("BinaryMI", "VFAE", "3", "-0.110 ± 0.025", "ahead"),)


def test_the_papers_prediction_from_one_draw_is_compared_too():
    own = [search("BinaryMI", fold, scores(0.7 + 0.01 * fold, 0.1, **drawn(0.6, 0.2))) for fold in range(3)]
    other = [search("AdvCls", fold, scores(0.65, 0.1)) for fold in range(3)]
    constant = [reference("constant", fold, scores(0.5, 0.0, 0.0)) for fold in range(3)]
    rows = tables_of([*own, *other, *constant])["compas-differences"].rows
    assert [(*row[:2], row[3].split()[0], row[4]) for row in rows] == [
        ("BinaryMI", "AdvCls", "-0.060", "ahead"),
        ("BinaryMI", "constant", "-0.110", "ahead"),
        ("BinaryMI, one draw", "AdvCls", "+0.150", "behind"),
        ("BinaryMI, one draw", "constant", "+0.100", "behind"),
    ]


def test_settings_stand_beside_the_papers():
    records = [search("BinaryMI", 1, scores(0.7, 0.1), best={"gamma": 0.25, "depth": 1, "beta": 1416.13})]
    records += [search("BinaryMI", 0, scores(0.7, 0.1))]
    table = tables_of(records)["compas-settings"]
    assert table.head[:5] == ("method", "gamma", "beta", "hidden layers", "batch size")
    assert table.rows[0] == ("BinaryMI", "0.16 / 0.25", "– / 1416", "2 / 1", "128 / –", "12 / 4 / 2")
    assert table.rows[1] == ("BinaryMI (paper)", "0.16", "–", "2", "242", "–")


def test_what_has_no_records_is_left_out():
    assert list(tables_of([search("BinaryMI", 0, scores(0.7, 0.1))])) == ["compas-scores", "compas-settings"]
    assert list(tables_of([reference("constant", 0, scores(0.5, 0.0))])) == ["compas-scores"]
    assert [section for part in PARTS for section in part([])] == []


def test_representations_have_a_row_per_view_the_one_handed_on_first():
    (section,) = representation([search("BinaryMI", 0, scores(0.7, 0.1, **drawn(0.6, 0.1)))])
    rows = section.tables[0].rows
    assert rows[0] == ("BinaryMI", "one draw", "1", "0.950", "0.550", "0.700", "0.600")
    assert rows[1][1] == "theta"


def test_planes_show_the_first_the_most_and_the_last():
    (section,) = plane_sections([plane("BinaryMI", 0.5, 0), plane("BinaryMI", 0.5, 0, epochs=2)])
    (row,) = section.tables[0].rows  # the longer run counts
    assert row[:10] == ("BinaryMI", "0.5", "1", "3", *("0.000", "1.000", "1.000"), *("0.100", "0.200", "0.000"))


def test_images_stand_beside_published_numbers():
    seeds = [image("BinaryBernoulli", 0.99, seed, accuracy) for seed, accuracy in ((1, 0.92), (0, 0.9))]
    (section, _) = biased_mnist(seeds)
    assert "10 epochs" in section.tables[0].title
    rows = {row[0]: row for row in section.tables[0].rows}
    assert rows["BinaryBernoulli"] == (
        *("BinaryBernoulli", "0.99", "91.00", "90.00 / 92.00", "96.02", "paper"),
        *("–", "–", "–"),
    )
    assert rows["EnD"][2:6] == ("–", "–", "96.02", "Tartaglione et al. 2021")
    assert "from memory" in rows["BiasCon+BiasBal"][5]


def test_the_information_of_a_code_stands_beside_that_of_permuted_colours():
    more = {"one_draw_accuracy": 0.89, "information": 0.5, "permuted_information": 0.4}
    (section, _) = biased_mnist([image("mine", 0.9, 0, 0.8, **more)])
    assert section.tables[0].rows[1][-3:] == ("89.00", "0.500", "0.400")


def test_scores_on_held_out_training_digits_have_a_table_of_their_own():
    apart = image("Vanilla", 0.99, 0, 0.8)
    apart["run"]["held_out"] = 9
    (section, _) = biased_mnist([image("Vanilla", 0.99, 0, 0.9), apart | {"hash": "apart"}])
    first, second = section.tables
    assert len(first.rows) > 2
    assert [row[:3] for row in second.rows] == [("Vanilla", "0.99", "80.00")]
    assert "9 training digits left out" in second.title


def test_a_rho_that_nobody_published_has_our_rows_alone():
    (section, _) = biased_mnist([image("Vanilla", 0.9, 0, 0.9)])
    assert [row[0] for row in section.tables[0].rows] == ["constant", "Vanilla"]
