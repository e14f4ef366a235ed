"""Ingest of flow and mass cytometry: FCS files, each of which is a bag of cells."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from io import BytesIO
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from ...core import ListOf, MappingOf, Real, Text
from ...core.arrays import Floats
from ...core.errors import DataError, closest, needing_extra, shown
from ...data.bags.format_rules import FormatRules
from ...data.store.store import BagStore
from ..calls import function_of
from ..registry import FORMATS
from .bag_files import FileIngest
from .folders import check_finite_rows, reading_bag

SPILLOVER = ("spillover", "spill")  # keys of the matrix, as FlowIO has them
_INTEGER_BITS = ("8", "16", "32")  # bits of integers that FlowIO reads
BYTE_ORDERS = ("1,2,3,4", "4,3,2,1", "1,2", "2,1")  # FlowIO takes any other for this machine's
_MAX_NAMED = 9  # channels in a line of the log

FCS_RULES = FormatRules(
    name="FCS files",
    calls=("ingest_fcs",),
    honoured={
        "$PnE": "logarithmic integers become linear numbers",
        "$PnG": "numbers are divided by the gain",
        "$PnR": "integers are cut to the bits of the range",
        "$PnB": "integers of 8, 16 and 32 bits, also of several widths in one file",
        "$PnN, $PnS": "names of channels and markers",
        "$PnTYPE": "type of a channel, as scatter, time or fluorescence",
        "$TIMESTEP": "the channel `Time` is multiplied by it",
        "$SPILLOVER, SPILL": "divided out with `compensate=True`",
        "$BYTEORD": "1,2,3,4 and 4,3,2,1 (1,2 and 2,1)",
        "$DATATYPE": "I, F and D",
        "$TOT": "compared with the number of events in the file",
        "$MODE": "L, a list of events",
    },
    refused={
        "$TOT": "the file is cut or damaged: export it again",
        "$MODE": "export the events as a list ($MODE L)",
        "$BYTEORD": "export the file as FCS 3.1 with byte order 1,2,3,4 or 4,3,2,1",
        "$DATATYPE": "export the file as FCS 3.1 with $DATATYPE F",
        "$PnDATATYPE": "export the file as FCS 3.1, where all channels have one type",
        "$PnE": "floating-point events are linear: set $PnE to 0,0 if they are, or export them so",
        "$PnB": "export the file as FCS 3.1 with $DATATYPE F",
        "$PnR": "write a range of 1 to 2^$PnB",
        "$PnG": "logarithmic channels have no gain: set $PnG to 1 if that is so",
        "empty values": "give the keyword a value, or leave it out",
        "$NEXTDATA": "write each data set to a file of its own",
        "$COMP, $DFCnTOm": "set compensate to false, or compensate before",
    },
    warned={
        "$PnS of several panels": "if the panels differ, name the markers in `coordinates`",
    },
    ignored={
        "$PnD, $PnV, $PnF, $PnL, $PnCALIBRATION": "settings of display and detectors",
        "$GATE, $RnI, $RnW": "gates; all events are read",
        "$ABRT, $LOST": "counts of events that were never written",
    },
)

# First words of the names of scatter channels, by BD, Beckman Coulter, Cytek, Sony, Apogee, Quanta.
SCATTER = re.compile(
    r"\*?(?:[a-z]?(?:fsc|ssc|bsc)\d*[ahw]?|[fs]s\d*|[fr]als|[sml]als|fwd|forward|side|back|light|ev|"
    r"electronic|scatter)(?![a-z0-9])",
    re.IGNORECASE,
)
TIME = re.compile(r"(?:hdr[ _.-]|time\d*(?![a-z0-9])|t[lm]sw)", re.IGNORECASE)
# Shapes of pulses, and the bookkeeping of cytometers and of programs for mass cytometry.
BOOKKEEPING = re.compile(
    r"(?:event|cell[ _.-]?length|width|(?:trigger[ _.-]?)?pulse|center|offset|residual|adc\d|"
    r"bc[ _.-]?sep|barcode|mahalanobis|bead[ _.-]?dist|file[ _.-]?n(?:o|um)|sample[ _.-]?id|"
    r"object[ _.-]?n|sort(?:ing)?(?![a-z])|classifier|drop[ _.-]phase|roi[ _.-]bits|"
    r"index(?![a-z])|original[ _.-]?id)",
    re.IGNORECASE,
)
STAINED_TYPES = ("rawfluorescence", "unmixedfluorescence", "mass")
OTHER_TYPES = ("forwardscatter", "sidescatter", "time", "index", "classification")

logger = logging.getLogger(__name__)


@FORMATS.register
@dataclass(frozen=True)
class FcsIngest(FileIngest):
    """Make a store from FCS files, or append to one. Each file is a bag; its events are the points.

    Values are read as by `flowio.FlowData.as_array`: linear, with each channel's gain applied. Only
    one file is in memory at a time.

    Parameters
    ----------
    points : str, path or list of str
        A folder of ``.fcs`` files, a glob or files, at a path or any URL that fsspec supports
        (``pip install 'bagbasis[fcs]'``). The id of a bag is the name of its file without the
        ending. Bags are stored in the order of their ids.
    url : str or path
        The store to write.
    coordinates
        Names of the channels, as in PnN or in PnS ("CD4"). Files may have the channels in different
        orders. A log line (INFO) names the channels that were used, left out and transformed. None:
        all fluorescence or metal channels of the first file. Scatter, time and bookkeeping channels
        (event length, sort results) are then left out. With mode="append" None stands for the
        coordinates of the store. A channel whose marker differs between files is warned about.
    cofactor : float > 0 or mapping from channel to float
        Cofactor of the transform arcsinh(x / cofactor). A number applies to all channels except
        scatter and time. A mapping applies to the channels it names. Usual values are 150 for
        fluorescence and 5 for mass cytometry. None: no transform.
    compensate
        Whether each file is compensated with its spillover matrix before the transform.
    target_table : path, data frame or mapping
        Table with one row per file: a file of a kind that `TableIngest` reads, or a table in
        memory. Files without a row are not labelled.
    target_id_column
        Column of the target table with the file names, with or without the ending. Names are read
        as text: 007 and 7 are different names, and NA and None are names too.
    targets
        Columns of the target table to store: numbers, or text, which becomes classes. None: all
        columns. With mode="append" None stands for the targets of the store.
    read : mapping
        Options for reading a CSV target_table, as in `TableIngest`: ``{"encoding": "latin-1"}``.
    box, dtype, overwrite, chunk_points
        As for `ingest_arrays`.
    mode, known_ids
        As for `TableIngest`. ``mode="append", known_ids="skip"`` adds only the new files of a
        folder.
    progress : callable
        Function that is called with the number of files read and the number of all files.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If there are no files, or if a file cannot be read, lacks a channel or the spillover matrix,
        or holds a number that is not finite. Also if two channels have the same marker, the number
        of events is not the stated one, or an attribute is refused. The message names the file, the
        channel and the row.
    ParameterError
        If a row of the target_table has no file, or two rows name the same file.
    StoreError
        If the URL is taken or cannot be written.

    See Also
    --------
    ingest_tables : Read Parquet, Arrow and CSV files.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> from bagbasis.ingest import ingest_fcs
    >>> store = ingest_fcs('samples', 'bags.zarr', ['CD3', 'CD4'])  # doctest: +SKIP
    """

    name: ClassVar[str] = "fcs"
    endings: ClassVar[tuple[str, ...]] = (".fcs",)
    rules: ClassVar[FormatRules] = FCS_RULES

    _: KW_ONLY
    coordinates: Annotated[Sequence[str], ListOf(Text, 1)] | None = None
    cofactor: (
        Annotated[float | Mapping[str, float], Real(gt=0) | MappingOf(Text, Real(gt=0))] | None
    ) = 150.0
    compensate: bool = False

    @override
    def bags(self, urls: Sequence[str]) -> Iterator[pd.DataFrame]:
        channels = self.coordinates
        if channels is None and self.mode == "append":
            channels = BagStore.open(self.url).coordinate_names
        markers: dict[str, tuple[str, str]] = {}
        for url in urls:
            events = _read(url, self.compensate)
            first = channels is None or url == urls[0]
            if channels is None:
                channels = [events.names[j] for j in events.stained]
                if not channels:
                    raise DataError(
                        f"{url}: all channels are scatter, time or bookkeeping; name "
                        "the coordinates"
                    )
            at = [events.find(name) for name in channels]
            events.check_markers(channels, at, markers)
            events.check_linear(at)
            points = events.numbers[:, at]
            check_finite_rows(points, url, [f"channel {name!r}" for name in channels])
            factors = [
                self._cofactor_of(name, j in events.stained)
                for name, j in zip(channels, at, strict=True)
            ]
            if first:
                _log_channels(events, channels, at, factors)
            for j, by in enumerate(factors):
                if by is not None:
                    points[:, j] = np.arcsinh(points[:, j] / by)
            yield pd.DataFrame(points, columns=[*channels], copy=False)

    def _cofactor_of(self, name: str, is_stained: bool) -> float | None:
        """Return the cofactor of a channel; None where its numbers stay linear."""
        if isinstance(self.cofactor, Mapping):
            return self.cofactor.get(name)
        return self.cofactor if is_stained else None


ingest_fcs = function_of(FcsIngest, "ingest_fcs")


@dataclass(frozen=True)
class _Events:
    """Events of a file, shape (n, channels), and the names of its channels.

    ``amplified`` are the floating-point channels that the file declares as logarithmic.
    """

    url: str
    numbers: Floats
    names: list[str]
    markers: list[str]
    stained: list[int]
    """Channels of fluorescence (or metal): neither scatter, nor time, nor bookkeeping."""
    amplified: list[int]

    def find(self, channel: str) -> int:
        """Return the number of a channel by its name; PnN takes precedence over PnS."""
        for names, kind in ((self.names, "channels"), (self.markers, "markers")):
            at = [j for j, name in enumerate(names) if name == channel]
            if len(at) > 1:
                numbers = [self.names[j] if kind == "markers" else j + 1 for j in at]
                rule = "name the channel" if kind == "markers" else "rename one"
                raise DataError(
                    f"{self.url}: {channel!r} is in {len(at)} channels, {shown(numbers)}; {rule}"
                )
            if at:
                return at[0]
        known = [*self.names, *filter(None, self.markers)]
        hint = closest(channel, known)
        raise DataError(f"{self.url}: no channel {channel!r}{hint}; there are {shown(known)}")

    def check_markers(
        self, channels: Sequence[str], at: Sequence[int], known: dict[str, tuple[str, str]]
    ) -> None:
        """Warn about a detector with another marker than in an earlier file, which ``known`` has.

        ``known`` maps each channel to its marker and the URL of the first file with this channel.
        """
        for channel, j in zip(channels, at, strict=True):
            marker = self.markers[j].strip()
            if not marker or self.names[j] != channel:
                continue
            first, url = known.setdefault(channel, (marker, self.url))
            if first.casefold() != marker.casefold():
                problem = f"channel {channel!r} has the marker {marker!r}, and {first!r} in {url}"
                FCS_RULES.warn("$PnS of several panels", self.url, problem)

    def check_linear(self, at: Sequence[int]) -> None:
        """Refuse floating-point channels that the file declares as logarithmic."""
        for j in at:
            if j in self.amplified:
                name = self.names[j]
                problem = f"channel {name!r} has floating-point numbers and a logarithmic $PnE"
                raise FCS_RULES.refusal("$PnE", self.url, problem)


def is_stained(name: str, marker: str = "", kind: str = "") -> bool:
    """Return whether a channel is fluorescence or a metal.

    Parameters
    ----------
    name, marker : str
        Names of the channel in PnN and PnS.
    kind : str
        $PnTYPE of the channel (FCS 3.2), which decides if the file has it.
    """
    plain = re.sub(r"[^a-z]", "", kind.casefold())
    if plain in STAINED_TYPES + OTHER_TYPES:
        return plain in STAINED_TYPES
    rules = [(SCATTER, name), (TIME, name), (BOOKKEEPING, name), (SCATTER, marker), (TIME, marker)]
    return not any(rule.match(text.strip()) for rule, text in rules)


def _log_channels(
    events: _Events,
    channels: Sequence[str],
    at: Sequence[int],
    factors: Sequence[float | None],
) -> None:
    """Log which channels are coordinates, which are left out, and which are transformed."""
    by = [
        f"{name} (cofactor {factor:g})"
        for name, factor in zip(channels, factors, strict=True)
        if factor
    ]
    others = [name for j, name in enumerate(events.names) if j not in at]
    logger.info(
        "%s: coordinates are the channels %s; left out: %s; arcsinh of %s",
        events.url,
        _listed(channels),
        _listed(others),
        _listed(by),
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more if names else "none"


def _read(url: str, compensate: bool) -> _Events:
    with needing_extra("fcs", url):
        from flowio import FlowData  # noqa: PLC0415
        from flowio.exceptions import MultipleDataSetsError  # noqa: PLC0415
    with reading_bag(url, "FCS") as stream:
        try:
            content = stream.read()  # FlowIO closes what it reads
            delimiter = chr(content[int(content[10:18])])
            _check_text(FlowData(BytesIO(content), only_text=True).text, delimiter, url)
            data = FlowData(BytesIO(content))
        except MultipleDataSetsError:
            raise FCS_RULES.refusal(
                "$NEXTDATA", url, "there are several data sets in the file"
            ) from None
        if not data.event_count:
            raise DataError(f"{url}: there are no events")
        numbers = data.as_array()
        if len(numbers) != data.event_count:
            problem = f"$TOT is {data.event_count}, but there are {len(numbers)} events"
            raise FCS_RULES.refusal("$TOT", url, problem)
        names, markers = list(data.pnn_labels), list(data.pns_labels)
        kinds = [data.text.get(f"p{j}type", "") for j in range(1, len(names) + 1)]
        stained = [
            j for j, of in enumerate(zip(names, markers, kinds, strict=True)) if is_stained(*of)
        ]
        amplified = []
        if data.data_type.upper() != "I":
            amplified = [n - 1 for n, of in data.channels.items() if of["pne"][0] > 0]
        if compensate:
            _compensate(numbers, names, data.text, url)
        return _Events(url, numbers, names, markers, stained, amplified)


def _check_text(text: Mapping[str, str], delimiter: str, url: str) -> None:
    """Refuse keywords that would make FlowIO read wrong numbers."""
    kind, order = text["datatype"].strip().upper(), text["byteord"].replace(" ", "")
    if text["mode"].strip().upper() != "L":
        raise FCS_RULES.refusal(
            "$MODE", url, f"$MODE is {text['mode']!r}, a histogram, not a list of events"
        )
    if kind not in ("I", "F", "D"):
        raise FCS_RULES.refusal("$DATATYPE", url, f"$DATATYPE is {text['datatype']!r}")
    is_read = order == text["byteord"] or order.startswith("1")  # FlowIO knows no blanks
    if order not in BYTE_ORDERS or not is_read:
        raise FCS_RULES.refusal("$BYTEORD", url, f"$BYTEORD is {text['byteord']!r}")
    for key, value in text.items():
        if re.fullmatch(r"p\d+datatype", key) and value.strip().upper() != kind:
            raise FCS_RULES.refusal(
                "$PnDATATYPE", url, f"${key.upper()} is {value!r}, $DATATYPE is {kind!r}"
            )
        # two delimiters stand for one within a word: a keyword without a value swallows the next
        empty, *hidden = key.split(delimiter)
        if hidden and re.fullmatch(r"p\d+[a-z]+|timestep|spill(over)?", hidden[0]):
            problem = f"${empty.upper()} has no value, which hides ${hidden[0].upper()}"
            raise FCS_RULES.refusal("empty values", url, problem)
    if kind == "I":
        for j in range(1, int(text["par"]) + 1):
            _check_integers({key: text.get(f"p{j}{key}", "").strip() for key in "bgre"}, j, url)


def _check_integers(channel: Mapping[str, str], j: int, url: str) -> None:
    """Refuse widths, ranges and gains with which FlowIO would read wrong numbers or none."""
    bits, gain, limit, decades = (channel[key] for key in "bgre")
    if bits not in _INTEGER_BITS:
        raise FCS_RULES.refusal("$PnB", url, f"$P{j}B is {bits!r}, the bits of an integer")
    if not (limit.isdigit() and 1 <= int(limit) <= 2 ** int(bits)):
        problem = f"$P{j}R is {limit!r}, the range of an integer of {bits} bits"
        raise FCS_RULES.refusal("$PnR", url, problem)
    is_logarithmic = decades.split(",")[0].strip().strip("0.") != ""
    if is_logarithmic and gain not in ("", "0") and float(gain) != 1:
        problem = f"$P{j}G is {gain!r}, and $P{j}E is {decades!r}"
        raise FCS_RULES.refusal("$PnG", url, problem)


def _compensate(numbers: Floats, names: Sequence[str], text: Mapping[str, str], url: str) -> None:
    """Compensate in place: a row of measured values = a row of true values times the matrix.

    The matrix is given as text: the number of channels, their names, then the rows (FCS 3.1,
    $SPILLOVER).
    """
    spillover = next((text[key] for key in SPILLOVER if text.get(key)), "")
    parts = [part.strip() for part in spillover.split(",")]
    n = int(parts[0]) if parts[0].isdigit() else 0
    channels = parts[1 : n + 1]
    if not n or len(parts) != 1 + n + n * n or not set(channels) <= set(names):
        problem = "no spillover matrix of its channels"
        raise FCS_RULES.refusal("$COMP, $DFCnTOm", url, problem)
    matrix = np.array(parts[n + 1 :], np.float64).reshape(n, n)
    at = [names.index(name) for name in channels]
    numbers[:, at] = np.linalg.solve(matrix.T, numbers[:, at].T).T
