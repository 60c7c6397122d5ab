"""HTML reports: tables that can be sorted and filtered, charts and heat maps, in one file that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from floatlab.errors import shortened
from floatlab.page.model import Block, Chart, Gap, Line, Note, Page, Role, Row, Table, line, text_of
from floatlab.page.svg import SVG, SVG_BOLD, chart_to_svg, escaped
from floatlab.page.text_layout import set_page
from floatlab.record import Record

_STYLE = """
:root{color-scheme:light}
body{margin:2rem auto;max-width:72rem;padding:0 1rem;background:#f6f8fa;color:#1f2328}
body{font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.35rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;background:#fff;margin:.6rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border:1px solid #d8dee4;text-align:left}
td{white-space:nowrap}
.names td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:13rem;max-width:34rem}
.r{text-align:right}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid #0065a3}
th[aria-sort=ascending] button::after{content:" \\25B4"}th[aria-sort=descending] button::after{content:" \\25BE"}
.scroll{overflow-x:auto}input{font:inherit;padding:.2rem .5rem;width:22rem;max-width:100%}
pre{overflow-x:auto;line-height:1.35;font-variant-ligatures:none}
figure{margin:.6rem 0}figcaption{color:#656d76}svg{max-width:100%;height:auto}code{overflow-wrap:anywhere}
.map td{text-align:right;min-width:3.2rem}
"""
# Sorts a table by the column whose title is clicked, and hides rows without the text that is typed in the search box.
_SCRIPT = """
const size=t=>{const s=t.replace(/[!,%]|dB/g,'').trim();
if(s==='\\u221e')return Infinity;if(s.startsWith('2^'))return 2**+s.slice(2);
return s===''||isNaN(s.split(' ')[0])?null:+s.split(' ')[0]};
document.querySelectorAll('table.sorts').forEach(t=>{
t.querySelectorAll('th button').forEach((b,i)=>b.onclick=()=>{
const h=b.parentNode,up=h.getAttribute('aria-sort')!=='ascending';
t.querySelectorAll('th').forEach(e=>e.removeAttribute('aria-sort'));
h.setAttribute('aria-sort',up?'ascending':'descending');
const rows=[...t.tBodies[0].rows].map(r=>[r,r.cells[i].textContent,size(r.cells[i].textContent)]);
rows.sort((a,b)=>(a[2]!==null&&b[2]!==null?a[2]-b[2]:(a[2]===null)-(b[2]===null)||a[1].localeCompare(b[1]))*(up?1:-1));
rows.forEach(r=>t.tBodies[0].append(r[0]))})});
document.querySelectorAll('input[data-filters]').forEach(b=>b.oninput=()=>{
for(const r of document.getElementById(b.dataset.filters).tBodies[0].rows)
r.hidden=!r.textContent.toLowerCase().includes(b.value.toLowerCase())});
"""
_COLUMNS = 100  # the width of blocks whose columns are aligned
_LONG = 100  # longer names in a table are shortened to this many characters
_FILTERED = 12  # tables with at least this many rows have a box that filters them
_LOW, _MIDDLE, _HIGH = (224, 134, 70), (255, 255, 255), (90, 160, 210)  # dark text can be read on all of them


class HeatCell(Record):
    """A cell of a heat map: its text, and its heat from -1 (bad) to 1 (good); without a heat it has no colour."""

    text: str
    heat: float | None = None


class HeatMap(Record):
    """A table of colours and numbers: its caption, the titles of its columns, and its rows, each with a title."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]


def report(page: Page, more: Iterable[tuple[str, HeatMap | Chart]], remark: str = "") -> str:
    """Return the blocks of a page, then charts and heat maps with titles, as an HTML document.

    Tables can be sorted. Blocks other than tables, rows and notes are drawn as on a terminal. `remark`, for instance
    the command that made the document, is shown at the end.

    >>> from floatlab.page.model import heading
    >>> cells = (HeatCell("< 1", -1.0), HeatCell("2", 1.0))
    >>> text = report(Page((heading("a"),), "a"), [("by layer", HeatMap("dB", ("q", "k"), (("0", cells),)))])
    >>> text.count("<td"), "&lt; 1" in text, "http" in text
    (2, True, False)
    """
    parts = [_block(block, place) for place, block in enumerate(page.blocks)]
    for title, each in more:
        drawn = _heat_map(each) if isinstance(each, HeatMap) else _figure(each, title)
        parts.append(f"<h2>{escaped(title)}</h2>\n{drawn}")
    below = f"<p><code>{escaped(remark)}</code></p>\n" if remark else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escaped(page.title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{''.join(parts)}{below}<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _spans(content: Line) -> str:
    found = []
    for run in content:
        style = f"color:{SVG[run.role]}" if run.role in SVG else ""
        style += ";font-weight:bold" if run.role in SVG_BOLD else ""
        found.append(f'<span style="{style}">{escaped(run.text)}</span>' if style else escaped(run.text))
    return "".join(found)


def _block(block: Block, place: int) -> str:
    if isinstance(block, Table):
        return _table(block, f"table{place}")
    if isinstance(block, Row):
        aside = line("  ", block.aside) if block.aside else ()
        return f"<p><b>{escaped(block.label)}</b> {_spans(line(block.content, aside))}</p>\n"
    if isinstance(block, Note):
        is_title = any(run.role is Role.HEADING for run in block.content)
        return f"<h1>{_spans(block.content)}</h1>\n" if is_title else f"<p>{_spans(block.content)}</p>\n"
    if isinstance(block, Gap):
        return ""
    # The columns of all other blocks are aligned, as on a terminal.
    return "<pre>" + "\n".join(map(_spans, set_page(Page((block,)), _COLUMNS))) + "</pre>\n"


def _table(table: Table, name: str) -> str:
    side = ['class="r"' if place in table.right else "" for place in range(len(table.header))]
    head = "".join(
        f"<th {side[place]}><button>{escaped(title)}</button></th>" for place, title in enumerate(table.header)
    )
    rows = []
    for first, *others in table.rows:
        cells = "".join(f"<td {side[place]}>{_spans(cell)}</td>" for place, cell in enumerate(others, 1))
        rows.append(f"<tr>{_name('td', first)}{cells}</tr>\n")
    box = (
        f'<input data-filters="{name}" aria-label="filter" placeholder="filter: part of a name, a type, a recipe …">\n'
    )
    kind = "" if table.optional is None else " names"
    return (
        f"{box if len(rows) >= _FILTERED else ''}"
        f'<div class="scroll"><table id="{name}" class="sorts{kind}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody></table></div>\n"
    )


def _name(tag: str, cell: Line) -> str:
    """Return a cell with a name. If the name is shortened, the full name is a tooltip."""
    name = text_of(cell)
    if len(name) <= _LONG:
        return f"<{tag}>{_spans(cell)}</{tag}>"
    return f'<{tag} title="{escaped(name)}">{escaped(shortened(name, _LONG))}</{tag}>'


def _figure(chart: Chart, title: str) -> str:
    return f"<figure>{chart_to_svg(chart, title)}</figure>\n"


def _heat_map(found: HeatMap) -> str:
    head = "".join(_name("th", line(title)) for title in ("", *found.columns))
    rows = "".join(f"<tr><th>{escaped(title)}</th>{''.join(map(_cell, cells))}</tr>\n" for title, cells in found.rows)
    return (
        f'<figure class="scroll"><table class="map"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n'
        f"<figcaption>{escaped(found.caption)}</figcaption></figure>\n"
    )


def _cell(cell: HeatCell) -> str:
    if cell.heat is None:
        return f"<td>{escaped(cell.text)}</td>"
    end, share = (_HIGH if cell.heat > 0 else _LOW), min(abs(cell.heat), 1.0)
    mixed = [round(middle + (last - middle) * share) for middle, last in zip(_MIDDLE, end, strict=True)]
    return f'<td style="background:#{bytes(mixed).hex()}">{escaped(cell.text)}</td>'
