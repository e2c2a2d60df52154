"""`fairbits transform` and `fairbits predict`: one draw per person, in the ledger before it leaves."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from people import population

import fairbits as library
from fairbits.certificate import AlreadyReleasedError
from fairbits.certificate.ledger import LEDGER_NAME as NAME
from fairbits.commands import drawn_codes
from fairbits.tables import table_file as files

BITS = [f"bit{i}" for i in range(6)]


@pytest.fixture
def place(fitted, tmp_path, monkeypatch):
    """Return a folder with a model to draw from and new people."""
    shutil.copytree(fitted / "m", tmp_path / "m")
    population(300, 7).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bits(file):
    return pd.read_csv(file)[BITS].to_numpy()


def test_bits_follow_the_chances_of_the_model(place, fairbits):
    new = pd.concat([population(300, 7)] * 40, ignore_index=True)  # people alike
    new.to_csv("many.csv", index=False)
    ended = fairbits("transform", "m", "many.csv", "-o", "bits.csv")
    assert ended.code == 0, ended.err
    drawn = bits("bits.csv").reshape(40, 300, 6).mean(0)
    model = library.load("m/model")
    theta = model[-1].code_probabilities(model[:-1].transform(_read_as_in_fit(population(300, 7))))
    assert np.abs(drawn - theta).max() < 5 * 0.5 / np.sqrt(40)
    assert np.abs((drawn - theta).mean(0)).max() < 0.025


def _read_as_in_fit(frame):
    return frame.assign(day=pd.to_datetime(frame.day))[["grade", "height", "job", "day"]]


def test_kept_columns_are_carried_as_they_stand(place, fairbits):
    population(300, 7).assign(id=["007", "NA", "None", ""] * 75).to_csv("odd.csv", index=False)
    assert fairbits("transform", "m", "odd.csv", "-o", "bits.csv", "--keep", "id,sex").code == 0
    found = pd.read_csv("bits.csv", dtype=str, keep_default_na=False)
    assert found.columns.tolist() == ["id", "sex", *BITS]
    assert found.id.tolist() == ["007", "NA", "None", ""] * 75
    assert found.sex.tolist() == population(300, 7).sex.tolist()


def test_a_second_draw_is_refused_and_says_what_to_do(place, fairbits):
    assert fairbits("transform", "m", "new.csv").code == 0
    before = (place / "m" / "model" / NAME).read_bytes()
    for command in ("transform", "predict"):
        ended = fairbits(command, "m", "new.csv", "-o", "again.csv")
        assert ended.code == 1
        for words in ("All 300 people already have a code", "covers only one per person", "--reuse", "--again"):
            assert words in ended.err
    assert not (place / "again.csv").exists()
    assert (place / "m" / "model" / NAME).read_bytes() == before


def test_a_few_old_people_among_new_ones_are_noticed_in_another_order_and_file(place, fairbits):
    assert fairbits("transform", "m", "new.csv").code == 0
    some = pd.concat([population(50, 8), population(300, 7)[5:8]]).sample(frac=1, random_state=0)
    some.to_parquet("some.parquet")
    ended = fairbits("transform", "m/model", "some.parquet", "-o", "b.csv")
    assert "3 of 53 people already have a code" in ended.err


def test_reuse_hands_out_the_same_code_and_draws_for_new_people(place, fairbits):
    assert fairbits("transform", "m", "new.csv", "-o", "a.csv").code == 0
    pd.concat([population(20, 9), population(300, 7)]).to_csv("more.csv", index=False)
    ended = fairbits("transform", "m", "more.csv", "-o", "b.parquet", "--reuse", "--json")
    record = json.loads(ended.out)
    assert (record["rows"], record["new"], record["reused"], record["most_draws"]) == (320, 20, 300, 1)
    assert record["covered"] is None  # unknown without --person
    assert "covers these codes is unknown: without --person" in fairbits("transform", "m", "more.csv", "--reuse").out
    np.testing.assert_array_equal(pd.read_parquet("b.parquet")[BITS].to_numpy()[20:], bits("a.csv"))


def test_again_draws_and_says_what_a_certificate_would_have_to_cover(place, fairbits):
    for count in (1, 2, 3):
        ended = fairbits("transform", "m", "new.csv", "-o", f"{count}.csv", "--again")
        assert ended.code == 0
    assert "300 people now have up to 3 codes, and the certificate covers 1" in ended.out
    assert "--draws 3" in ended.out
    assert (bits("1.csv") != bits("2.csv")).any()
    record = json.loads(fairbits("transform", "m", "new.csv", "-o", "4.csv", "--again", "--json").out)
    assert (record["most_draws"], record["again"], record["covered"]) == (4, 300, False)
    ended = fairbits("transform", "m", "new.csv", "-o", "5.csv", "--reuse")
    assert "Some of these people have up to 4 codes, and the certificate covers 1" in ended.out
    np.testing.assert_array_equal(bits("5.csv"), bits("4.csv"))


def test_people_may_be_named(place, fairbits):
    assert fairbits("transform", "m", "new.csv", "--person", "id").code == 0
    moved = population(300, 7).assign(grade=0.5)  # other values, the same people
    moved.to_csv("moved.csv", index=False)
    assert "recognised by id" in fairbits("transform", "m", "moved.csv", "-o", "b.csv", "--person", "id").err
    ended = fairbits("transform", "m", "new.csv", "-o", "b.csv")
    assert "recognises people by id. Pass --person id" in ended.err
    pd.concat([moved[:5], moved[:1]]).to_csv("twice.csv", index=False)
    ended = fairbits("transform", "m", "twice.csv", "-o", "b.csv", "--person", "id")
    assert "1 row has the same id as an earlier row" in ended.err
    moved.assign(id=["", *moved.id[1:]]).to_csv("nobody.csv", index=False)
    assert "Row 1 has no value in id" in fairbits("transform", "m", "nobody.csv", "-o", "b.csv", "--person", "id").err


def test_named_people_who_have_one_code_are_covered(place, fairbits):
    ended = fairbits("transform", "m", "new.csv", "--person", "id", "--json")
    assert json.loads(ended.out)["covered"] is True
    ended = fairbits("transform", "m", "new.csv", "-o", "b.csv", "--person", "id", "--reuse")
    assert "unknown" not in ended.out


def test_a_lost_or_older_ledger_is_noticed(place, fairbits):
    ledger = place / "m" / "model" / NAME
    assert fairbits("transform", "m", "new.csv", "--person", "id").code == 0
    older = ledger.read_bytes()
    population(50, 8).to_csv("more.csv", index=False)
    assert fairbits("transform", "m", "more.csv", "-o", "b.csv", "--person", "id").code == 0
    ledger.write_bytes(older)
    ended = fairbits("predict", "m", "new.csv", "-o", "c.csv", "--person", "id", "--reuse")
    assert ended.code == 1
    assert "it has 300 entries" in ended.err
    assert "had 350 entries" in ended.err
    assert "--accept-loss" in ended.err
    ledger.unlink()
    assert "There is no ledger in" in fairbits("transform", "m", "more.csv", "-o", "c.csv", "--person", "id").err
    shutil.copytree("m", "moved")
    assert "There is no ledger in" in fairbits("transform", "moved", "more.csv", "-o", "c.csv", "--person", "id").err
    ended = fairbits("transform", "m", "more.csv", "-o", "c.csv", "--person", "id", "--accept-loss")
    assert "unknown: an earlier ledger was lost" in ended.out
    shutil.copytree("m", "copied")  # with ledger and receipt
    ended = fairbits("transform", "copied", "more.csv", "-o", "d.csv", "--person", "id", "--reuse", "--json")
    assert (json.loads(ended.out)["reused"], json.loads(ended.out)["covered"]) == (50, None)


def test_models_that_share_a_ledger_say_who_has_codes_of_both(place, fairbits):
    model = library.load("m/model")
    with torch.no_grad():
        next(model[-1].net_.parameters()).add_(0.1)
    library.save(model, "other")
    shared = ["--person", "id", "--ledger", "shared.ledger"]
    assert "another model" not in fairbits("transform", "m", "new.csv", *shared).out
    pd.concat([population(300, 7)[:40], population(20, 8)]).to_csv("some.csv", index=False)
    ended = fairbits("transform", "other", "some.csv", "-o", "b.csv", *shared)
    assert "of these people, 40 also got a code of another model" in ended.out
    assert "--beside OTHER" in ended.out
    record = json.loads(fairbits("transform", "other", "some.csv", "-o", "c.csv", *shared, "--reuse", "--json").out)
    assert (record["other_models"], record["reused"], record["new"]) == (40, 60, 0)
    assert "40 of 60 people already have a code" in fairbits("transform", "m", "some.csv", "-o", "d.csv", *shared).err
    ended = fairbits("transform", "m", "new.csv", "-o", "d.csv", "--person", "id")  # forgotten
    assert "shared.ledger) had 300 entries" in ended.err


@pytest.mark.parametrize("named", [True, False])
def test_python_and_the_command_line_share_a_ledger(place, fairbits, named):
    table, ledger = population(300, 7), place / "m" / "model" / NAME
    people = range(1, 301) if named else None
    table.assign(id=range(1, 301)).to_csv("new.csv", index=False)
    person = ["--person", "id"] if named else []
    known = {"person": None if people is None else pd.Series(people, name="id", dtype=float), "ledger": ledger}
    model, X = library.load("m/model"), _read_as_in_fit(table)
    first = library.release(model, X[:100], **{**known, "person": None if people is None else known["person"][:100]})
    ended = fairbits("transform", "m", "new.csv", *person)
    assert "100 of 300 people already have a code" in ended.err
    assert fairbits("transform", "m", "new.csv", *person, "--reuse").code == 0
    np.testing.assert_array_equal(bits("bits.csv")[:100], first.codes)
    with pytest.raises(AlreadyReleasedError, match="All 300 people"):
        library.release(model, X, **known)
    np.testing.assert_array_equal(library.release(model, X, repeated="reuse", **known).codes, bits("bits.csv"))


def test_leading_zeros_of_names_are_asked_about(place, fairbits):
    table = population(20, 7)
    table.assign(id=[f"{i:03d}" for i in range(20)]).to_csv("text.csv", index=False)
    table.assign(id=range(20)).to_csv("numbers.csv", index=False)
    assert fairbits("transform", "m", "text.csv", "--person", "id").code == 0
    ended = fairbits("transform", "m", "numbers.csv", "-o", "b.csv", "--person", "id")
    assert ended.code == 1
    assert "differ only in leading zeros of the identifier, as 7 and 007 do" in ended.err
    same = ["--person", "id", "--leading-zeros", "same"]
    assert "All 20 people already" in fairbits("transform", "m", "numbers.csv", "-o", "b.csv", *same).err
    assert fairbits("transform", "m", "numbers.csv", "-o", "b.csv", *same, "--reuse").code == 0
    np.testing.assert_array_equal(bits("b.csv"), bits("bits.csv"))
    ended = fairbits("transform", "m", "numbers.csv", "-o", "c.csv", *same[:3], "different", "--json")
    assert (json.loads(ended.out)["new"], json.loads(ended.out)["covered"]) == (20, True)


def test_rows_alike_in_one_table_are_different_people(place, fairbits):
    pd.concat([population(3, 5)] * 4).to_csv("alike.csv", index=False)
    ended = fairbits("transform", "m", "alike.csv", "-o", "a.csv")
    assert "9 rows are identical to an earlier one" in ended.out
    ended = fairbits("transform", "m", "alike.csv", "-o", "b.csv", "--reuse")
    np.testing.assert_array_equal(bits("a.csv"), bits("b.csv"))
    assert "12 rows are identical to other rows. If the row order changed" in ended.out
    pd.concat([population(3, 5)[1:], population(1, 6)]).to_csv("one.csv", index=False)  # one each of two, and a new one
    record = json.loads(fairbits("transform", "m", "one.csv", "-o", "c.csv", "--reuse", "--json").out)
    assert (record["reused"], record["exchangeable"]) == (2, 2)


@pytest.mark.parametrize("named", [True, False])
def test_codes_of_people_who_are_named_or_differ_cannot_be_exchanged(place, fairbits, named):
    table = pd.concat([population(3, 5)] * 2).assign(id=range(6)) if named else population(6, 5)
    table.to_csv("people.csv", index=False)
    person = ["--person", "id"] if named else []
    assert fairbits("transform", "m", "people.csv", "-o", "a.csv", *person).code == 0
    table[::-1].to_csv("turned.csv", index=False)
    ended = fairbits("transform", "m", "turned.csv", "-o", "b.csv", "--reuse", *person)
    assert "identical" not in ended.out
    np.testing.assert_array_equal(bits("a.csv")[::-1], bits("b.csv"))


def test_pieces_make_no_difference(place, fairbits, monkeypatch):
    assert fairbits("transform", "m", "new.csv", "-o", "a.csv", "--keep", "id").code == 0
    monkeypatch.setattr(files, "PIECE_ROWS", 7)
    assert fairbits("transform", "m", "new.csv", "-o", "b.csv", "--keep", "id", "--reuse").code == 0
    assert (place / "a.csv").read_text() == (place / "b.csv").read_text()
    pd.read_csv("new.csv").to_parquet("new.parquet", row_group_size=11)
    assert fairbits("transform", "m", "new.parquet", "-o", "c.csv", "--keep", "id", "--reuse").code == 0
    assert (place / "a.csv").read_text() == (place / "c.csv").read_text()


def test_predictions_are_those_of_the_code(place, fairbits):
    fairbits("transform", "m", "new.csv", "-o", "bits.csv")
    assert fairbits("predict", "m", "new.csv", "-o", "p.csv", "--reuse", "--keep", "id", "--probabilities").code == 0
    found = pd.read_csv("p.csv")
    assert found.columns.tolist() == ["id", "prediction", "probability_no", "probability_yes"]
    method = library.load("m/model")[-1]
    np.testing.assert_allclose(found[["probability_no", "probability_yes"]], method.decode(bits("bits.csv")), atol=1e-6)
    assert (found.prediction == np.where(found.probability_yes > 0.5, "yes", "no")).all()


def test_expected_predictions_need_no_draw_and_say_that_nothing_covers_them(place, fairbits):
    first = fairbits("predict", "m", "new.csv", "-o", "p.csv", "--expected")
    fairbits("predict", "m", "new.csv", "-o", "q.csv", "--expected")
    assert "does not cover these predictions" in first.out
    assert (place / "p.csv").read_text() == (place / "q.csv").read_text()
    assert not (place / "m" / "model" / NAME).exists()
    assert fairbits("predict", "m", "new.csv", "-o", "r.csv").code == 0
    assert (
        json.loads(fairbits("predict", "m", "new.csv", "-o", "s.csv", "--expected", "--json").out)["covered"] is False
    )


def test_odd_columns_are_mended_or_said(place, fairbits):
    odd = population(300, 7)
    odd.loc[:2, "job"] = "astronaut"
    odd["more"] = 1
    odd["day"] = None
    odd[["more", *odd.columns[::-1][1:]]].to_csv("odd.csv", index=False, sep=";", encoding="utf-8-sig")
    ended = fairbits("transform", "m", "odd.csv")
    assert ended.code == 0
    assert "job has values the model has not seen in its fit: 'astronaut', in 3 of 300 rows" in ended.out
    assert "day is missing in every row" in ended.out
    assert "separated by semicolon" in ended.out


def test_a_full_disk_leaves_the_codes_in_the_ledger(place, fairbits, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", full)
        ended = fairbits("transform", "m", "new.csv")
    assert ended.code == 1
    assert "No space left" in ended.err
    assert "run again with --reuse" in ended.err
    assert not list(place.glob("*bits*"))
    assert not list(place.glob(".part*"))
    assert "300 of them use a code that was released before" in fairbits("transform", "m", "new.csv", "--reuse").out


def test_a_table_that_changes_meanwhile_is_not_mixed_up(place, fairbits, monkeypatch):
    release_pieces = drawn_codes.release_pieces

    def changed(*arguments, **options):
        released = release_pieces(*arguments, **options)
        population(300, 8).to_csv("new.csv", index=False)
        return released

    monkeypatch.setattr(drawn_codes, "release_pieces", changed)
    ended = fairbits("transform", "m", "new.csv", "--keep", "id")
    assert "new.csv changed while it was read" in ended.err
    assert not (place / "bits.csv").exists()


def test_kept_columns_of_parquet_may_begin_empty(place, fairbits, monkeypatch):
    monkeypatch.setattr(files, "PIECE_ROWS", 100)
    note = [None] * 250 + ["late"] * 50
    population(300, 7).assign(note=note).to_parquet("new.parquet")
    assert fairbits("transform", "m", "new.parquet", "-o", "bits.parquet", "--keep", "note").code == 0
    assert pd.read_parquet("bits.parquet").note.tolist()[-1] == "late"
