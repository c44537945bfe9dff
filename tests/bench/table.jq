# SPDX-License-Identifier: GPL-2.0
# bench.json to a Markdown table. $kinds: the columns.

def rows: [
  # [row, title, what is shown, bar, aim] for the ratio to dm-linear
  ["read4k",	"4 KiB random read hits, QD 16: IOPS (us of CPU)",	"iops", 0.92, 0.96],
  ["write4k",	"4 KiB random write hits, dirty, QD 16: IOPS (us)",	"iops", 0.91, 0.95],
  ["fsync4k",	"the same, fsync after each: IOPS (us)",		"iops", 0.93, 0.97],
  ["miss4k",	"4 KiB write misses into free slots, QD 16: IOPS (us)",	"iops", 0.85, 0.92],
  ["miss_line",	"the same, each to a line of its own: IOPS (us)",	"iops", 0.85, 0.92],
  ["first_clean", "first 4 KiB writes to clean lines, QD 16: IOPS (us)", "iops", 0.70, 0.85],
  ["lines_again", "second writes to these lines, QD 16: IOPS (us)",	"iops", 0.91, 0.95],
  ["read128k",	"128 KiB random read hits, QD 16: MB/s",		"mb", 0.97, 1.0],
  ["write128k",	"128 KiB random write hits, QD 16: MB/s",		"mb", 0.97, 1.0],
  ["lat_read",	"4 KiB read hits, depth 1: us",				"us", 1.0, 0.6],
  ["lat_write",	"4 KiB write hits, depth 1: us",			"us", 1.0, 0.6]
];

def metadata_rows: [
  ["meta_overwrite", "overwrites of dirty blocks", 0],
  ["meta_fsync",    "overwrites of dirty blocks, fsync after each", 0],
  ["meta_miss4k",   "write misses into free slots", 2],
  ["meta_miss_line", "the same, each to a line of its own", 2],
  ["meta_first_clean", "first writes to clean lines", null]
];

def names: { raw: "raw SSD", linear: "dm-linear", writecache: "dm-writecache",
  dmcache: "dm-cache smq", bcache: "bcache", ssdcache: "**ssdcache**" };

def round(n): (. * pow(10; n) | round) / pow(10; n) | tostring;
def fixed(n): (round(n) | split(".")) as $p |
  if n == 0 then $p[0] else $p[0] + "." + (($p[1] // "") + "000")[0:n] end;

def show(what):
  if . == null then "-"
  elif what == "iops" then "\(.iops / 1000 | fixed(1))k (\(1e6 / .iops | fixed(2)))"
  elif what == "mb" then .bytes_per_s / 1e6 | fixed(0)
  else .latency_ns / 1000 | fixed(2) end;

def mark(good; aim): if aim then "aim" elif good then "pass" else "MISS" end;

def ratio($c; $l; $row):
  if $c == null or $l == null then "| | |"
  elif $row[2] == "us" then
    (($c.latency_ns - $l.latency_ns) / 1000) as $d |
    "| +\($d | fixed(2)) us | \($row[3]) / \($row[4]) us | \(mark($d <= $row[3]; $d <= $row[4]))"
  else
    ($c.iops / $l.iops) as $r |
    "| \($r | fixed(3)) | \($row[3]) / \($row[4]) | \(mark($r >= $row[3]; $r >= $row[4]))"
  end;

($kinds | split(" ")) as $k |
.results as $all |
def cell($kind; $row): first($all[] | select(.kind == $kind and .row == $row)) // null;

"Kernel \(.kernel), virtual time (1 instruction = 1 ns), SSD 80 us at depth 128, disk 4 ms at depth 1; \(.commit).",
"",
"| | " + ([$k[] | names[.] // .] | join(" | ")) + " | to dm-linear | bar / aim | |",
"|---" + ([$k[] | "|---"] | join("")) + "|---|---|---|",
(rows[] | . as $row | select(any($all[]; .row == $row[0])) |
  "| \($row[1]) | " + ([$k[] | cell(.; $row[0]) | show($row[2])] | join(" | ")) +
  " " + ratio(cell("ssdcache"; $row[0]); cell("linear"; $row[0]); $row) + " |"),
(if any($all[]; .kind == "ssdcache" and .metadata_blocks != null) then
  "",
  "| metadata written, % of the data | blocks of 4 KiB | commits | % | bar | |",
  "|---|---|---|---|---|---|",
  (metadata_rows[] | . as $row | cell("ssdcache"; $row[0]) | select(. != null) |
    (.metadata_blocks * 409600 / .data_bytes) as $p |
    "| \($row[1]) | \(.metadata_blocks) | \(.commits) | \($p | fixed(2)) | \($row[2] // "-") | " +
    (if $row[2] == null then "" elif $p <= $row[2] then "pass" else "MISS" end) + " |")
else empty end)
