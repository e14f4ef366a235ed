"""Tables with thousands of columns: what is done for each does not grow with their number."""

from __future__ import annotations

import pytest

from bagbasis import BagStore, DataError
from bagbasis.ingest import ingest_tables
from bagbasis.ingest.tables import Database, files, surveys
from bagbasis.ingest.tables.files import TableFile


def table(path, n_columns):
    names = [f"g{j}" for j in range(n_columns)]
    rows = [",".join(["bag", *names])]
    rows += [",".join([str(i // 2), *(str(i + j / 2) for j in range(n_columns))]) for i in range(4)]
    path.write_text("\n".join(rows))
    return names


@pytest.fixture
def queries(monkeypatch):
    """All that DuckDB is asked."""
    asked, fetch = [], Database.fetch

    def recorded(self, query, report=None):
        asked.append(query)
        return fetch(self, query, report)

    monkeypatch.setattr(Database, "fetch", recorded)
    return asked


@pytest.mark.long
def test_no_column_is_copied_for_another(tmp_path, queries):
    """For each aggregate with a FILTER, DuckDB copies all columns: 9,001 took 21 GB."""
    n_filters, n_characters = [], []
    for n_columns in (3, 30):
        names = table(path := tmp_path / f"{n_columns}.csv", n_columns)
        queries.clear()
        url = tmp_path / f"{n_columns}.zarr"
        ingest_tables(path, url, id_column="bag", coordinates=names)
        n_filters.append(sum(query.count(" FILTER ") for query in queries))
        n_characters.append(sum(map(len, queries)))
        points = BagStore.open(url).read().points
        assert points.tolist() == [[i + j / 2 for j in range(n_columns)] for i in range(4)]
    assert n_filters[0] == n_filters[1]
    assert n_characters[1] < 11 * n_characters[0]


@pytest.mark.parametrize("n_columns", [6, 7])
def test_many_columns_are_surveyed_in_parts(n_columns, tmp_path, monkeypatch, queries):
    """By queries of three columns the store is the same, and so is what is told of a bad row.

    The results of 10,000 columns do not fit in a block of DuckDB, which ended the process.
    """
    names = table(path := tmp_path / "f.csv", n_columns)
    header, *rows = [line.split(",") for line in path.read_text().split("\n")]
    rows[1][3] = rows[2][n_columns] = rows[0][n_columns] = ""
    label = [["y"], ["1"], ["1"], ["2"], ["2"]]

    def ingest(url, **cells):
        lines = [header, *([cells.get(f"r{i}", {}).get(j, c) for j, c in enumerate(r)]
                           for i, r in enumerate(rows))]  # fmt: skip
        path.write_text("\n".join(",".join([*a, *b]) for a, b in zip(lines, label, strict=True)))
        asked = {
            "coordinates": names,
            "targets": ["y"],
            "missing": "median",
            "box": {"quantile": 0.1},
        }
        return ingest_tables(path, tmp_path / url, id_column="bag", **asked)

    def message_of(url):
        with pytest.raises(DataError) as caught:
            ingest(url, r3={2: "b"}, r1={n_columns: "a"})
        return str(caught.value)

    whole, message = ingest("whole.zarr"), message_of("a.zarr")
    monkeypatch.setattr(surveys, "COORDINATES_PER_SURVEY", 3)
    queries.clear()
    parts = ingest("parts.zarr")
    assert len([query for query in queries if "count(*)" in query]) == -(-n_columns // 3)
    assert parts.box == whole.box
    assert parts.coordinate_names == whole.coordinate_names
    assert parts.read().points.tolist() == whole.read().points.tolist()
    assert parts.targets().tolist() == whole.targets().tolist()
    assert message_of("b.zarr") == message
    assert f"'g{n_columns - 1}' is 'a', not a number" in message


def test_missing_cells_do_not_count_for_the_range(tmp_path):
    """Neither an empty cell nor NaN is the least or the largest value of a column."""
    (path := tmp_path / "f.csv").write_text("bag,x,y\n1,,3\n1,2,nan\n2,-1,5\n2,NaN,4\n")
    store = ingest_tables(
        path, tmp_path / "s.zarr", id_column="bag", coordinates=["x", "y"], missing="median"
    )
    assert store.box.lo[:2] <= (-1, 3)
    assert store.box.hi[:2] >= (2, 5)
    assert store.box.hi[0] < 3


def test_positions_of_columns():
    """The first of two columns of one name counts."""
    file = TableFile("f.csv", 0, ("a", "b", "a"), ("x", "y", "z"), 1, 1)
    assert file.positions == {"a": 0, "b": 1}
    assert (file.type_of("a"), file.type_of("c")) == ("x", "csv")


def test_more_coordinates_than_a_csv_file_may_have(tmp_path, monkeypatch):
    """The limit is told before a row is read; columns that are not read do not count."""
    monkeypatch.setattr(files, "MAX_TEXT_COORDINATES", 4)
    names = table(path := tmp_path / "f.csv", 5)
    with pytest.raises(DataError, match=r"f\.csv: 5 coordinates of a CSV file; at most 4"):
        ingest_tables(path, tmp_path / "s.zarr", id_column="bag", coordinates=names)
    assert not (tmp_path / "s.zarr").exists()
    store = ingest_tables(path, tmp_path / "s.zarr", id_column="bag", coordinates=names[1:])
    assert store.n_dims == 4
