"""The sample reports against the JSON Schema and the JUnit XSD: formats.py FOLDER SCHEMA XSD. Exit 77: a tool is missing."""

import copy
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

folder, schema_path, xsd_path = sys.argv[1:4]
try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)
if not shutil.which("xmllint"):
    print("skipped: xmllint (libxml2-utils) is not installed")
    sys.exit(77)

failed = []


def claim(name, holds, more=""):
    print(("ok      " if holds else "FAILED  ") + name + (f": {more}" if more and not holds else ""))
    if not holds:
        failed.append(name)


def closed(node):
    """The same schema without room for members that it does not name: what is written must be documented."""
    if isinstance(node, dict):
        node = {key: closed(value) for key, value in node.items()}
        if node.get("type") == "object":
            node["additionalProperties"] = False
        return node
    return [closed(value) for value in node] if isinstance(node, list) else node


def no_constants(word):
    raise ValueError("not JSON: " + word)


with open(schema_path, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
strict = jsonschema.Draft202012Validator(closed(schema))
names = ("usual", "single", "empty", "hostile", "sound", "known")
for name in names:
    with open(f"{folder}/{name}.json", "rb") as file:
        text = file.read().decode("utf-8")  # strict: invalid UTF-8 fails here
    report = json.loads(text, parse_constant=no_constants)
    errors = [e.message[:200] for e in validator.iter_errors(report)]
    claim(f"{name}.json is valid", not errors, errors[:3])
    errors = [f"{list(e.absolute_path)[:6]} {e.message[:160]}" for e in strict.iter_errors(report)]
    claim(f"{name}.json has no member that the schema does not document", not errors, errors[:3])
    with open(f"{folder}/{name}.html", encoding="utf-8") as file:
        page = file.read()
    data = re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.S).group(1)
    embedded = json.loads(data, parse_constant=no_constants)
    claim(f"{name}.html embeds the same runs", len(embedded["runs"]) == len(report["runs"])
          and all(a["case"] == b["case"] and a["verdict"] == b["verdict"] for a, b in zip(embedded["runs"], report["runs"])))
    claim(f"{name}.html: the data hold no markup", not re.search("[<>&\u2028\u2029]", data))
    claim(f"{name}.html has three scripts and one style", page.count("<script") - page.count('"<script') >= 3
          and len(re.findall(r"</script>", page)) == 3 and len(re.findall(r"</style>", page)) == 1)
    lint = subprocess.run(["xmllint", "--noout", "--huge", "--schema", xsd_path, f"{folder}/{name}.xml"], capture_output=True, text=True)
    claim(f"{name}.xml is valid JUnit", lint.returncode == 0, lint.stderr[:400])
    # The two schemas themselves (JUnit.xsd, junit-10.xsd) are not ours to ship; a folder of them may be named.
    for original in sorted(glob.glob(os.environ.get("GCK_JUNIT_SCHEMAS", "/nonexistent") + "/*.xsd")):
        lint = subprocess.run(["xmllint", "--noout", "--huge", "--schema", original, f"{folder}/{name}.xml"], capture_output=True, text=True)
        claim(f"{name}.xml is valid under {os.path.basename(original)}", lint.returncode == 0, lint.stderr[:400])

# A validator that takes everything would show nothing: faults planted, each must be told.
with open(f"{folder}/usual.json", encoding="utf-8") as file:
    usual = json.load(file)
for path, value in ((["verdict"], "none"), (["runs", 0, "seed"], 7), (["runs", 0, "gradients", 0, "score", "max"], "Infinity"),
                    (["runs", 0, "gradients", 0, "compared"], -1), (["schema"], "gradcheck-report-2"),
                    (["runs", 0, "checks", 0, "exhibits", 0, "kind"], "pie")):
    broken = copy.deepcopy(usual)
    node = broken
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    claim(f"a planted fault in {path} is told", not validator.is_valid(broken))

tree = ElementTree.parse(f"{folder}/usual.xml").getroot()
cases = tree.findall(".//testcase")
claim("every run is a case", len(cases) == len(usual["runs"]))
failures = tree.findall(".//failure")
claim("fail and vacuous are failures", sorted(f.get("type") for f in failures) == ["fail", "vacuous"])
claim("failures hold the reproduction line", all("reproduce: gradcheck " in f.text for f in failures))
claim("undefined and skipped have their reason", sorted(s.get("message") for s in tree.findall(".//skipped"))
      == ["dx: ill-conditioned inputs, condition number 8.1e4", "no CUDA device"])
claim("suites count their cases", all(int(s.get("tests")) == len(s.findall("testcase")) for s in tree))
known = ElementTree.parse(f"{folder}/known.xml").getroot()
claim("a known failure is no failure to a CI system, and says so", not known.findall(".//failure")
      and sum("known until 2099-12-31: issue 41" in (s.get("message") or "") for s in known.findall(".//skipped")) == 2)
empty = ElementTree.parse(f"{folder}/empty.xml").getroot()
claim("a report that judged nothing is red for a CI system", len(empty.findall(".//failure")) == 1)
sys.exit(1 if failed else 0)
