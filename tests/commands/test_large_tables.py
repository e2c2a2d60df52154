"""Tables in many files: read piece by piece, and the same as one file; parts, shards, workers and kills."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from people import population

from benchmarks.scale import measured
from fairbits.tables import table_file as files
from fairbits.tables.table_file import open_table
from fairbits.tables.table_sample import Draws
from fairbits.workflow import summed_checks

ROWS = 600
COMMAND = [sys.executable, "-c", "from fairbits.commands import main; main()"]


@pytest.fixture
def place(hard, tmp_path, monkeypatch):
    """A hard model in m, new rows in new.parquet, and the same rows in three files, one of them of two row groups."""
    shutil.copytree(hard / "m", tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "PART_ROWS", 100)
    frame = population(ROWS, 7)
    frame.to_parquet("new.parquet", index=False)
    (tmp_path / "rows").mkdir()
    for number, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        frame.iloc[part].to_parquet(f"rows/part-{number}.parquet", index=False, row_group_size=100 if number else None)
    return tmp_path


def read_all(folder):
    return pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("part-*.parquet"))], ignore_index=True)


def bytes_of(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_a_folder_a_pattern_and_csv_files_are_one_table(place):
    frame = population(ROWS, 7)
    (place / "texts").mkdir()
    frame[:250].to_csv("texts/a.csv", index=False)
    frame[250:].to_csv("texts/b.csv.gz", index=False)
    (place / "rows" / "_SUCCESS").touch()
    (place / "rows" / "_temporary").mkdir()
    frame.to_parquet("rows/_temporary/half.parquet")
    for path in ("rows", "rows/*.parquet", "texts"):
        table = open_table(path)
        whole = table.read().frame
        pd.testing.assert_frame_equal(whole, open_table("new.parquet").read().frame, check_dtype=False)
        assert pd.concat(table.pieces(["grade"]))["grade"].tolist() == frame.grade.tolist()
    assert open_table("rows").most_rows() == ROWS
    assert open_table("texts").most_rows() >= ROWS


def test_what_is_no_table_is_said(place, fairbits):
    frame = population(10, 0).drop(columns="job")
    frame.to_parquet("rows/z.parquet")
    ended = fairbits("transform", "m", "rows", "-o", "bits")
    assert "part-0.parquet has a column 'job' and rows/z.parquet has none." in ended.err
    (place / "empty").mkdir()
    assert "There is no CSV or Parquet file in empty." in fairbits("certify", "m", "empty").err
    assert "No file is no*.csv." in fairbits("certify", "m", "no*.csv").err


def test_parts_hold_the_codes_of_one_file(place, fairbits):
    assert fairbits("transform", "m", "new.parquet", "-o", "one.parquet", "--keep", "id").code == 0
    ended = fairbits("transform", "m", "rows", "-o", "bits", "--keep", "id")
    assert "5 parts written to bits; 0 were there already." in ended.out
    assert "600 codes written to bits." in ended.out
    pd.testing.assert_frame_equal(read_all(place / "bits"), pd.read_parquet("one.parquet"))


def test_packed_bits_are_the_number_of_the_word(place, fairbits):
    fairbits("transform", "m", "rows", "-o", "bits")
    fairbits("transform", "m", "rows", "-o", "packed", "--packed")
    fairbits("transform", "m", "rows", "-o", "packed.csv", "--packed")
    bits, packed = read_all(place / "bits"), read_all(place / "packed")
    assert packed.code.dtype == np.uint8
    assert packed.code.tolist() == [int("".join(map(str, row)), 2) for row in bits.to_numpy().tolist()]
    assert pd.read_csv("packed.csv").code.tolist() == packed.code.tolist()


def test_predictions_in_parts_are_those_of_one_file(place, fairbits):
    fairbits("predict", "m", "rows", "-o", "classes", "--probabilities")
    fairbits("predict", "m", "new.parquet", "-o", "one.parquet", "--probabilities")
    pd.testing.assert_frame_equal(read_all(place / "classes"), pd.read_parquet("one.parquet"))


def test_shards_and_workers_write_the_same_bytes(place, fairbits):
    fairbits("transform", "m", "rows", "-o", "whole")
    for shard in range(3):
        ended = fairbits("transform", "m", "rows", "-o", f"shard{shard}", "--shard", f"{shard}/3")
        assert "parts are missing" in ended.out
    lacking = fairbits("merge", "shard0", "shard2", "-o", "merged")
    assert "2 of 5 parts are missing, the first is number 1." in lacking.err
    assert fairbits("merge", "shard0", "shard1", "shard2", "-o", "merged").code == 0
    assert bytes_of(place / "merged") == bytes_of(place / "whole")
    fairbits("transform", "m", "rows", "-o", "together", "--shard", "1/2")
    ended = fairbits("transform", "m", "rows", "-o", "together", "--shard", "0/2")
    assert "missing" not in ended.out
    assert bytes_of(place / "together") == bytes_of(place / "whole")


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(place, fairbits):
    fairbits("transform", "m", "rows", "-o", "whole")
    fairbits("transform", "m", "rows", "-o", "both", "--workers", "2")
    assert bytes_of(place / "both") == bytes_of(place / "whole")
    one, two = (json.loads(fairbits("certify", "m", "rows", "--workers", n, "--json").out) for n in ("2", "3"))
    assert one == two


def test_a_run_goes_on_with_the_missing_parts(place, fairbits):
    fairbits("transform", "m", "rows", "-o", "whole")
    fairbits("transform", "m", "rows", "-o", "bits")
    (place / "bits" / "part-000002.parquet").unlink()
    kept = (place / "bits" / "part-000001.parquet").stat().st_mtime_ns
    ended = fairbits("transform", "m", "rows", "-o", "bits")
    assert "1 parts written to bits; 4 were there already." in ended.out
    assert bytes_of(place / "bits") == bytes_of(place / "whole")
    assert (place / "bits" / "part-000001.parquet").stat().st_mtime_ns == kept
    for arguments in (["--packed"], ["--keep", "id"]):
        ended = fairbits("transform", "m", "rows", "-o", "bits", *arguments)
        assert ended.code == 1
        assert "bits holds parts of another table, model or options." in ended.err
    population(ROWS, 8).to_parquet("rows/part-0.parquet")
    assert "holds parts of another table" in fairbits("transform", "m", "rows", "-o", "bits").err


@pytest.mark.slow
def test_killed_in_the_middle_and_run_again_the_bytes_are_the_same(hard, tmp_path):
    (tmp_path / "rows").mkdir()
    for number in range(12):
        population(20_000, number).to_parquet(tmp_path / "rows" / f"{number:02d}.parquet")
    run = [*COMMAND, "transform", str(hard / "m"), str(tmp_path / "rows"), "-o"]
    subprocess.run([*run, str(tmp_path / "whole")], check=True, stdout=subprocess.DEVNULL)
    bits = tmp_path / "bits"
    process = subprocess.Popen([*run, str(bits)], stdout=subprocess.DEVNULL)
    while len(list(bits.glob("part-*"))) < 4:
        time.sleep(0.02)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {file.name: file.stat().st_mtime_ns for file in bits.glob("part-*")}
    assert 4 <= len(before) < 12
    subprocess.run([*run, str(bits)], check=True, stdout=subprocess.DEVNULL)
    assert {name: (bits / name).stat().st_mtime_ns for name in before} == before  # no part twice
    found = {name: content for name, content in bytes_of(bits).items() if not name.startswith(".part.")}
    assert found == bytes_of(tmp_path / "whole")


def test_sums_certify_as_all_rows_do(place, fairbits, monkeypatch):
    """The upper bounds are the same; the lower ones rest on other random halves of the rows."""
    whole = json.loads(fairbits("certify", "m", "new.parquet", "--json").out)
    monkeypatch.setattr(summed_checks, "STREAMED_ROWS", 0)
    monkeypatch.setattr("fairbits.workflow.model_checks.STREAMED_ROWS", 0)
    parts = json.loads(fairbits("certify", "m", "rows", "--json").out)
    assert parts["certificate"] == whole["certificate"]
    assert parts["verdict"] == whole["verdict"]
    assert [c["at_most"] for c in parts["compared"]] == [c["at_most"] for c in whole["compared"]]
    one = json.loads(fairbits("certify", "m", "new.parquet", "--json").out)
    assert one["certificate"] == whole["certificate"]


def test_sums_of_shards_are_merged_to_the_byte(place, fairbits, monkeypatch):
    monkeypatch.setattr("fairbits.workflow.model_checks.STREAMED_ROWS", 0)
    whole = fairbits("certify", "m", "rows", "--json")
    for shard in range(3):
        assert fairbits("certify", "m", "rows", "--shard", f"{shard}/3", "-o", f"sums{shard}.json").code == 0
    assert fairbits("merge", "sums2.json", "sums0.json", "sums1.json", "--json").out == whole.out
    assert "Shard 1/3 is missing." in fairbits("merge", "sums0.json", "sums2.json").err
    (place / "sums1.json").write_text("{}")
    assert "sums1.json holds no sums of a shard" in fairbits("merge", "sums0.json", "sums1.json").err
    assert "--shard and -o go together" in fairbits("certify", "m", "rows", "--shard", "0/3").err


def test_rows_of_the_fit_are_recognised_by_sums(place, hard, fairbits, monkeypatch):
    monkeypatch.setattr("fairbits.workflow.model_checks.STREAMED_ROWS", 0)
    ended = fairbits("certify", "m", hard / "pay.csv")
    assert ended.code == 3
    assert "Invalid: these rows were used in the fit." in ended.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shard", "3/3"], "--shard 3/3 must be a place and a count"),
        (["--ledger", "l"], "Counting people needs a ledger, and parts have none."),
        (["--key", "k"], "--key is for random codes."),
    ],
)
def test_what_parts_cannot_do_is_said(place, fairbits, arguments, words):
    ended = fairbits("transform", "m", "rows", "-o", "bits", *arguments)
    assert ended.code == 1
    assert words in ended.err
    assert not (place / "bits").exists()


def test_one_file_has_no_shards(place, fairbits):
    ended = fairbits("transform", "m", "rows", "-o", "bits.csv", "--shard", "0/2")
    assert "--shard writes parts, and bits.csv is one file. Name a folder, such as -o bits." in ended.err


def test_draws_depend_on_the_place_of_a_row_alone():
    draws = Draws(7, (0.24, 0.2))
    parts, uniform = draws.of(0, 10_000)
    later = draws.of(4_321, 100)
    np.testing.assert_array_equal(parts[4_321:4_421], later[0])
    np.testing.assert_array_equal(uniform[4_321:4_421], later[1])
    np.testing.assert_allclose(np.bincount(parts) / 10_000, [0.56, 0.24, 0.2], atol=0.02)
    assert abs(np.corrcoef(parts == 1, uniform)[0, 1]) < 0.03
    assert (Draws(8, (0.24, 0.2)).of(0, 100)[1] != uniform[:100]).all()


def test_a_large_table_is_fitted_from_a_sample_and_certified_on_all_rows_apart(tmp_path, fairbits, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    for number in range(3):
        population(10_000, number).to_parquet(f"rows/{number}.parquet", index=False)
    roles = ["--label", "paid", "--sensitive", "sex", "--max-disparity", "0.3", "--seed", "0", "--epochs", "3"]
    ended = fairbits("fit", "rows", *roles, "--for", "codes", "--fit-rows", "10000", "-o", "m")
    assert ended.code in (0, 5), ended.err
    assert "Of 30,000 rows," in ended.out
    record = json.loads((tmp_path / "m" / "audit.json").read_text())
    rows = record["certificate"]["bounds"][0]["rows"]
    draws, apart = Draws(0, (0.24, 0.2)), 0
    for first in range(0, 30_000, 10_000):
        apart += int((draws.of(first, 10_000)[0] == 1).sum())
    assert sum(rows.values()) == apart == record["task"]["rows"]["calibration"]
    assert record["task"]["rows"]["train"] + record["task"]["rows"]["test"] < 9_000
    assert fairbits("certify", "m", "rows").code == 3  # the rows of the fit
    people = fairbits("fit", "rows", *roles, "--fit-rows", "10000", "--person", "id", "-o", "m3")
    assert "--person needs all rows of a person together" in people.err


def test_a_table_of_fewer_rows_is_fitted_as_it_always_was(hard, tmp_path, fairbits, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    shutil.copy(hard / "pay.csv", tmp_path / "rows" / "pay.csv")
    roles = ["--label", "paid", "--sensitive", "sex", "--max-disparity", "0.7", "--seed", "0", "--epochs", "3"]
    for table, model in ((hard / "pay.csv", "a"), ("rows", "b")):
        fairbits("fit", table, *roles, "-o", model)
    one, two = ((tmp_path / name / "model" / "weights.safetensors").read_bytes() for name in "ab")
    assert one == two


def test_parts_are_small_row_groups(place, fairbits):
    fairbits("transform", "m", "rows", "-o", "bits")
    assert pq.ParquetFile(place / "bits" / "part-000000.parquet").metadata.num_rows == 200


@pytest.fixture
def decided(place, monkeypatch):
    """Decisions about people with two rows each, in one file and in three, of which a few rows are in memory."""
    frame = population(ROWS, 7, told=0.5)
    frame["who"] = [f"p{number % 300}" for number in range(ROWS)]
    frame["sex"] = frame.sex[:300].tolist() * 2
    frame["approved"] = np.where(frame.grade > 0.5, "yes", "no")
    frame.loc[::50, "approved"], frame.loc[3::100, "height"] = None, np.nan
    frame.to_parquet("new.parquet", index=False)
    for number, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        frame.iloc[part].to_parquet(f"rows/part-{number}.parquet", index=False)
    monkeypatch.setattr(files, "PIECE_ROWS", 70)
    return frame


@pytest.mark.parametrize(
    "asked",
    [
        ["--decision", "approved", "--sensitive", "sex,height", "--label", "paid"],
        ["--decision", "approved", "--sensitive", "sex,job", "--crossed", "--positive", "no"],
        ["--decision", "grade", "--sensitive", "sex", "--levels", "-0.5,0.25,1"],
    ],
)
def test_decisions_that_are_counted_have_the_certificate_of_all_rows(decided, fairbits, monkeypatch, asked):
    whole = json.loads(fairbits("certify", "new.parquet", *asked, "--json").out)
    monkeypatch.setattr("fairbits.tables.counted_rows.MOST_ROWS", 100)
    parts = json.loads(fairbits("certify", "rows", *asked, "--json").out)
    assert {**parts, "notes": whole["notes"]} == whole
    assert set(whole["notes"]) < set(parts["notes"])


def test_people_are_counted_once_wherever_their_rows_are(decided, fairbits, monkeypatch):
    asked = ["--decision", "approved", "--sensitive", "sex", "--label", "paid", "--person", "who"]
    whole = json.loads(fairbits("certify", "new.parquet", *asked, "--json").out)
    monkeypatch.setattr("fairbits.tables.counted_rows.MOST_ROWS", 100)
    parts = json.loads(fairbits("certify", "rows", *asked, "--json").out)
    assert parts["rows"] == whole["rows"] == 294  # six people have no decision
    for one, other in zip(parts["certificate"]["bounds"], whole["certificate"]["bounds"], strict=True):
        assert one["rows"] == other["rows"]
        assert one["total_variation"] == pytest.approx(other["total_variation"], rel=1e-9)
    for one, other in zip(parts["rates"], whole["rates"], strict=True):  # of other rows of the same people
        assert one["rows"] == other["rows"]
        assert one["selected"] == pytest.approx(other["selected"], abs=0.1)
    decided.loc[599, "sex"] = "F" if decided.sex[299] == "M" else "M"
    decided[400:].to_parquet("rows/part-2.parquet", index=False)
    assert "A person has rows in two groups." in fairbits("certify", "rows", *asked).err
    decided.loc[599, ["who", "sex"]] = "p0299", decided.sex[299]
    decided.loc[299, "who"] = "p299"
    decided["who"] = decided.who.str.removeprefix("p")
    for number, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        decided.iloc[part].to_parquet(f"rows/part-{number}.parquet", index=False)
    assert "differ only in leading zeros" in fairbits("certify", "rows", *asked).err


def test_people_are_counted_once_in_the_sums_of_a_model(decided, fairbits, monkeypatch):
    asked = ["certify", "m", "new.parquet", "--person", "who", "--json"]
    whole = json.loads(fairbits(*asked).out)
    monkeypatch.setattr("fairbits.workflow.model_checks.STREAMED_ROWS", 0)
    monkeypatch.setattr("fairbits.tables.counted_rows.MOST_ROWS", 100)
    parts = json.loads(fairbits("certify", "m", "rows", *asked[3:]).out)
    (one,), (other,) = (found["certificate"]["bounds"] for found in (parts, whole))
    assert one["rows"] == other["rows"]
    assert sum(one["rows"].values()) == 300
    assert one["total_variation"] == pytest.approx(other["total_variation"], rel=1e-9)
    assert one["information"] == pytest.approx(other["information"], rel=1e-9)
    assert parts["certificate"]["by_person"]
    assert parts["verdict"] == whole["verdict"]
    assert "has no column 'nobody'" in fairbits("certify", "m", "rows", "--person", "nobody").err


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Certifying decisions, by row and by person, and an audit of a table hold the same for four times the rows."""
    used = {}
    for rows in (1_000_000, 4_000_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        for part in range(rows // 500_000):
            rng, n = np.random.default_rng(part), 500_000
            columns = {f"x{place}": rng.normal(size=n).astype(np.float32) for place in range(6)}
            who, sex = part * n // 2 + np.arange(n) // 2, rng.integers(0, 2, n // 2).repeat(2)
            people = {"who": who, "sex": np.where(sex, "f", "m"), "got": np.where(columns["x0"] > 0, "yes", "no")}
            pd.DataFrame(columns | people).to_parquet(folder / f"{part}.parquet", index=False)
        decided = ("certify", folder, "--decision", "got", "--sensitive", "sex")
        audited = ("audit", folder, "--sensitive", "sex", "--columns", "x*")
        for name, command in {"rows": decided, "people": (*decided, "--person", "who"), "audit": audited}.items():
            used[name, rows] = measured(*command)["megabytes"]
    for name in ("rows", "people", "audit"):
        assert used[name, 4_000_000] < used[name, 1_000_000] + 60, used
        assert used[name, 4_000_000] < 1_000, used
