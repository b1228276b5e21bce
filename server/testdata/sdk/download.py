"""Downloads a list to a file. The arguments are the path and the query of the list, the format and the file. The program prints the header
Exported-Until of the last page and the highest memory of the program in KiB."""

import pathlib
import re
import sys
import urllib.parse

from reeltally import ReelTally

path, query, format, name = sys.argv[1:]
with open(name, "wb") as file:
    headers = ReelTally().download(path, file, dict(urllib.parse.parse_qsl(query)), format=format)
memory = re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())
print(headers.get("Exported-Until", "-"), memory and memory[1])
