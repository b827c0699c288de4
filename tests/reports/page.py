"""The page in a real browser: page.py FOLDER [PICTURES]. Exit 77 where there is no Chromium.

Looks at pixels, not only at elements; counts console errors and requests; measures contrast; runs axe-core if a Python
or Node package brings it (GCK_AXE names the file otherwise)."""

import glob
import importlib.util
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402

folder = os.path.abspath(sys.argv[1])
pictures = sys.argv[2] if len(sys.argv) > 2 else None
if not find_chromium():
    print("skipped: no Chromium is installed")
    sys.exit(77)

failed = []


def claim(name, holds, more=""):
    print(("ok      " if holds else "FAILED  ") + name + (f": {more}" if more and not holds else ""), flush=True)
    if not holds:
        failed.append(name)


def find_axe():
    found = [os.environ.get("GCK_AXE", ""), "/usr/share/nodejs/axe-core/axe.min.js"]
    for package in ("axe_playwright_python", "axe_core_python", "axe_selenium_python"):
        spec = importlib.util.find_spec(package)
        if spec and spec.submodule_search_locations:
            found += glob.glob(spec.submodule_search_locations[0] + "/**/axe.min.js", recursive=True)
    return next((path for path in found if path and os.path.isfile(path)), None)


SETTLE = "new Promise((r) => setTimeout(r, 250))"
OPEN_FIRST = "document.querySelector('.row[aria-expanded=false]')?.click()"

# Distinct colours on a canvas that are painted at all: an empty chart has none.
COLOURS = """((c) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set();
  for (let i = 0; i < d.length; i += 16) if (d[i + 3] > 200) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })"""

# WCAG 2.1, 1.4.3: text against what is really behind it, 4.5 (3 for large text).
CONTRAST = """(() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const lum = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
    return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || e.closest('script, style, noscript, .sr, .skip') || !e.getClientRects().length) continue;
    let behind = e;
    while (behind && parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const a = lum(parse(style.color)), b = lum(parse(getComputedStyle(behind || document.body).backgroundColor));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < (large ? 3 : 4.5)) bad.push([walk.currentNode.data.slice(0, 40), ratio.toFixed(2)]);
  }
  return bad; })()"""

# Every control has a name, ids are unique, headings skip no level, focusable things are not hidden from readers.
NAMES = """(() => {
  const bad = [];
  for (const e of document.querySelectorAll('button, a, input, select, summary, canvas[tabindex], [role=group], [role=img]')) {
    const name = e.getAttribute('aria-label') || (e.labels && e.labels[0] && e.labels[0].textContent) || e.textContent.trim();
    if (!name) bad.push('no name: ' + e.outerHTML.slice(0, 80));
    if (e.closest('[aria-hidden=true]')) bad.push('hidden control: ' + e.outerHTML.slice(0, 80));
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => bad.push('id twice: ' + id));
  let level = 0;
  for (const e of document.querySelectorAll('h1, h2, h3, h4, h5')) {
    const l = Number(e.tagName[1]);
    if (l > level + 1) bad.push('heading skips a level: ' + e.textContent.slice(0, 40));
    level = l;
  }
  if (!document.documentElement.lang) bad.push('no language');
  return bad; })()"""


def clean(b, what):
    claim(f"{what}: no console error", not b.errors, b.errors[:3])
    others = [u for u in b.requests if not u.startswith(("file://" + folder, "data:"))]
    claim(f"{what}: nothing is requested", not others and len([u for u in b.requests if u.startswith("file:")]) == 1, b.requests[:4])


def looks(b):
    for width in (360, 1600):
        for dark in (False, True):
            name = f"{width} px, {'dark' if dark else 'light'}"
            b.size(width, 900)
            b.scheme(dark)
            b.open(f"{folder}/usual.html")
            b.js(OPEN_FIRST)
            b.js("scrollTo(0, 1e6)")
            b.js(SETTLE)
            b.js("dispatchEvent(new Event('beforeprint'))")  # everything is drawn now
            b.js(SETTLE)
            clean(b, name)
            wide = b.js("document.documentElement.scrollWidth")
            claim(f"{name}: the page is not wider than the window", wide <= width, wide)
            ground = b.js("getComputedStyle(document.body).backgroundColor")
            claim(f"{name}: the scheme is followed", (sum(map(int, ground[4:-1].split(","))) < 200) == dark, ground)
            charts = b.js(f"[...document.querySelectorAll('.chart canvas')].map({COLOURS})")
            claim(f"{name}: charts are drawn", len(charts) == 4 and min(charts) >= 4, charts)
            maps = b.js(f"[...document.querySelectorAll('.map > canvas')].map({COLOURS})")
            claim(f"{name}: heat maps are drawn", len(maps) == 5 and min(maps) >= 8, maps)
            bad = b.js(CONTRAST)
            claim(f"{name}: text has contrast", not bad, bad[:5])
            bad = b.js(NAMES)
            claim(f"{name}: controls have names, headings order", not bad, bad[:5])
            axe = find_axe()
            if axe:
                with open(axe, encoding="utf-8") as file:
                    b.js(file.read() + "; 0")
                found = b.js("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => "
                             "[v.id, v.nodes.length, v.nodes[0].html.slice(0, 120), v.nodes[0].failureSummary]))", 120)
                claim(f"{name}: axe finds nothing", not found, json.dumps(found, indent=1)[:2500])
            else:
                print("skipped  axe-core is not installed (pip install axe-playwright-python brings it)")
            if pictures:
                b.picture(f"{pictures}/usual-{width}-{'dark' if dark else 'light'}.png", most=4000)


def works(b):
    b.size(1280, 900)
    b.scheme(False)
    b.open(f"{folder}/usual.html")
    claim("the verdict comes first", b.js("document.querySelector('h1').innerText").upper().startswith("FAIL"))
    claim("the title says the verdict", b.js("document.title").startswith("fail – 6 runs"))
    claim("the first finding's diagnosis is on the first screen",
          b.js("document.querySelector('.card h3').getBoundingClientRect().bottom") < 900)
    claim("it names the missing term", "without its third term" in b.js("document.querySelector('.card h3').textContent"))
    claim("the first wrong digit is marked", b.js("[...document.querySelectorAll('.card mark')].map((m) => m.textContent)[0]") == "9")
    shown = "document.querySelectorAll('.run').length"
    claim("all runs are listed", b.js(shown) == 6)
    b.click(".tile.v-skipped")
    claim("a verdict filters", b.js(shown) == 1 and b.js("document.querySelector('.tile.v-skipped').getAttribute('aria-pressed')") == "true")
    b.click(".tile.v-skipped")
    b.key("/", "/")
    claim("the slash finds the search", b.js("document.activeElement.type") == "search")
    b.call("Input.insertText", {"text": "third TERM layernorm"})
    b.js(SETTLE)
    claim("words search cases and findings", b.js(shown) == 1)
    claim("the count is told", b.js("document.querySelector('.shown').textContent") == "1 of 6 runs")
    b.js("(() => { const s = document.querySelector('input[type=search]'); s.value = 'no such run'; s.dispatchEvent(new Event('input')); })()")
    b.js(SETTLE)
    claim("nothing found is said", b.js("document.querySelector('.none').textContent").startswith("No run"))
    b.click(".none button")
    claim("the filter clears", b.js(shown) == 6)
    b.click(".row")
    claim("a run unfolds", b.js("document.querySelectorAll('.detail').length") == 1)
    b.key("Enter")
    claim("the keyboard folds it", b.js("document.querySelectorAll('.detail').length") == 0)
    b.key("Enter")
    # The hover: a wrong element's value is read out.
    b.js("document.querySelector('.map > canvas').scrollIntoView({block: 'center'})")
    b.js(SETTLE)
    box = b.js("(() => { const r = document.querySelector('.map > canvas').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()")
    b.move(box[0] + box[2] * 0.5, box[1] + box[3] * 0.995)
    said = b.js("document.querySelector('.map .readout').textContent")
    claim("hovering reads the value", said.startswith("rows 63, cols 384–389: ") and float(said.split(": ")[1].replace("e", "e")) > 1, said)
    b.js("document.querySelector('.map > canvas').focus()")
    b.key("Home")
    b.key("ArrowRight")
    claim("arrow keys move over the map", "390–395" in b.js("document.querySelector('.map .readout').textContent"),
          b.js("document.querySelector('.map .readout').textContent"))
    before = b.js("document.querySelector('.map > canvas').toDataURL()")
    b.key("+", "+")
    claim("plus zooms", b.js("document.querySelector('.map > canvas').toDataURL()") != before)
    b.js("navigator.clipboard.writeText = (t) => { window.copied = t; return Promise.resolve(); }")
    b.click(".card .command button")
    line = "gradcheck layernorm rows=64 cols=768 dtype=f32 seed=7 gen=1 --device host --kernel ./libmine"
    claim("copy copies the line", b.js("window.copied") == line)
    claim("and says so", b.js("document.querySelector('.card .command button').textContent") == "Copied")
    clean(b, "after all that")
    b.js("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    b.js("document.execCommand = (what) => { window.fell = what + document.activeElement.value.length; return true; }")
    b.click(".card .command button")
    claim("copy has a way without the clipboard", b.js("window.fell") == f"copy{len(line)}", b.js("window.fell"))
    anchor = b.js("document.querySelectorAll('.run')[3].id")
    b.open(f"{folder}/usual.html", "#" + anchor)
    claim("an anchor opens its run", b.js(f"document.getElementById({json.dumps(anchor)}).querySelector('.detail') !== null"))
    b.open(f"{folder}/usual.html")
    order = []
    for _ in range(9):
        b.key("Tab")
        order.append(b.js("document.activeElement.className || document.activeElement.tagName"))
    claim("the focus goes from the top down", order[0] == "skip" and order[1] == "plain" and all(o.startswith("tile") for o in order[2:7]), order)
    b.open(f"{folder}/single.html")
    claim("a single run is open at once", b.js("document.querySelectorAll('.detail').length") == 1)
    b.open(f"{folder}/empty.html")
    claim("an empty report says that nothing was judged", "nothing was judged" in b.js("document.querySelector('h1').textContent"))
    clean(b, "the empty report")


def holds_against_hostile_text(b):
    b.size(1280, 900)
    b.open(f"{folder}/hostile.html")
    b.js("document.querySelectorAll('.row').forEach((r) => r.click())")
    b.js("document.querySelectorAll('.linkish').forEach((x) => x.click())")
    b.js("dispatchEvent(new Event('beforeprint'))")
    b.js(SETTLE)
    clean(b, "hostile text")
    claim("hostile text makes no element", b.js("document.querySelectorAll('img, main script, main b b, iframe, object').length") == 0)
    claim("hostile text is shown as text", "<img src=x onerror=alert(1)>\"'`</script><script>alert(2)</script>" in b.js("document.querySelector('.card h3').textContent"))
    claim("control characters are shown, direction is not turned", b.js("/[\\u0000-\\u0008\\u001b\\u202e]/.test(document.body.innerText)") is False
          and b.js("document.body.innerText.includes('\u241b') && document.body.innerText.includes('\u27e8U+202E\u27e9')"))
    claim("100 KB are shown whole when asked", b.js("document.querySelector('#wrong').textContent.length") > 100000)
    claim("the page has its three scripts and no more", b.js("document.scripts.length") == 3)
    claim("the partial report says so", "partial" in b.js("document.querySelector('.notice').textContent"))
    claim("hostile text does not widen the page", b.js("document.documentElement.scrollWidth") <= 1280)
    # The policy must bite: an inline script and an event handler put in from outside do not run.
    b.js("try { const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s); } catch { }")
    b.js("try { const e = document.createElement('div'); document.body.append(e); e.setAttribute('onclick', 'window.broken = 2'); e.click(); } catch { }")
    b.js("try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken = 3\">'); } catch { }")
    b.js(SETTLE)
    claim("the policy stops scripts that are not the page's", b.js("window.broken") is None)


def stays_quick(b):
    b.open(f"{folder}/many.html")
    for _ in range(3):
        start = time.monotonic()
        b.open(f"{folder}/many.html")
        took = time.monotonic() - start
        print(f"         1,000 runs open in {took:.2f} s ({os.path.getsize(folder + '/many.html') / 1e6:.1f} MB)")
    claim("a thousand runs are listed", b.js("document.querySelectorAll('.run').length") == 1000)
    claim("a hundred failing runs make few cards", 1 <= b.js("document.querySelectorAll('.card').length") <= 12)
    b.js(OPEN_FIRST)
    b.js(SETTLE)
    claim("a thinned run still has its pictures", b.js("document.querySelectorAll('.map > canvas').length") == 3)
    clean(b, "a thousand runs")


with Browser() as browser:
    looks(browser)
    works(browser)
    holds_against_hostile_text(browser)
    stays_quick(browser)
sys.exit(1 if failed else 0)
