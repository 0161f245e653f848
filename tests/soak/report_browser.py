"""Opens pages of `sifr report` in Debian's chromium: report_browser.py SHOTS PAGE HOSTILE. At 360 and
1,280 px, light, dark and as printed: no error in the console, nothing wider than the window, no
violation that axe-core finds, no chart that is blank, no two parts that overlap; sorting, hiding and
zooming by the keyboard alone; the network is forbidden. Of HOSTILE no script runs. Screenshots go to
SHOTS."""
import base64
import http.server
import importlib.util
import io
import pathlib
import sys
import threading

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

AXE = (pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).parent
       / "axe.min.js").read_text()
failed = []
asked = []


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    def log_message(self, *_):
        pass


def check(good, text):
    if not good:
        failed.append(text)
        print("wrong: " + text)


def browser():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def look(driver, width, height, dark, media):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})


def shot(driver):
    data = driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def check_charts(driver, picture, name):
    """Each line is there in its colour: more than grid and ground."""
    boxes = driver.execute_script(
        "return Array.from(document.querySelectorAll('.plot svg,.time .scroll svg')).map(function(s){"
        "var b=s.getBoundingClientRect();return [b.left,b.top,b.right,b.bottom]})")
    check(len(boxes) >= 5, f"{name}: {len(boxes)} pictures")
    for left, top, right, bottom in boxes:
        if bottom > picture.height:
            continue
        part = picture.crop((max(0, int(left)), int(top), min(picture.width, int(right)), int(bottom)))
        ground = part.getpixel((part.width - 1, 1))
        colours = [c for n, c in part.getcolors(1 << 20) if c != ground and max(c) - min(c) > 40]
        check(colours, f"{name}: the picture at {int(top)} is blank")


def check_parts(driver, name):
    """Parts of one parent do not lie over each other, and texts stay in their boxes."""
    over = driver.execute_script("""
        var bad = [];
        document.querySelectorAll('main,section,.charts,figure,.key,.y,.x,.time').forEach(function (p) {
            var boxes = Array.from(p.children).map(function (e) { return [e, e.getBoundingClientRect()] })
                .filter(function (b) { return b[1].width > 0 && b[1].height > 0 });
            boxes.forEach(function (a, i) { boxes.slice(i + 1).forEach(function (b) {
                var w = Math.min(a[1].right, b[1].right) - Math.max(a[1].left, b[1].left);
                var h = Math.min(a[1].bottom, b[1].bottom) - Math.max(a[1].top, b[1].top);
                if (w > 1 && h > 1) bad.push(a[0].outerHTML.slice(0, 60) + ' over ' + b[0].outerHTML.slice(0, 60));
            }) });
        });
        document.querySelectorAll('.x').forEach(function (x) {
            var end = -1e9;
            Array.from(x.children).forEach(function (s) {
                var r = document.createRange(); r.selectNodeContents(s);
                var b = r.getBoundingClientRect();
                if (b.left < end) bad.push('labels of steps touch: ' + x.textContent);
                end = b.right;
            });
        });
        return bad;""")
    check(not over, f"{name}: {over[:3]}")


def check_axe(driver, name, opened=True):
    if opened:
        driver.execute_script("document.querySelectorAll('details').forEach(function(d){d.open=true})")
    driver.execute_script(AXE)
    found = driver.execute_async_script(
        "var done=arguments[0];axe.run().then(function(r){done([axe.version,r])})")
    version, result = found
    check(tuple(int(n) for n in version.split(".")[:2]) >= (4, 10), f"axe-core {version} is too old")
    for one in result["violations"]:
        check(False, f"{name}: axe: {one['id']}: {one['nodes'][0]['html'][:200]}")
    check(len(result["passes"]) > 20, f"{name}: axe looked at {len(result['passes'])} rules")


def check_console(driver, name):
    lines = [line["message"] for line in driver.get_log("browser") if line["level"] != "INFO"]
    check(not lines, f"{name}: the console has {lines[:2]}")


def check_looks(driver, page, shots):
    for width in (360, 1280):
        for dark, media in ((False, "screen"), (True, "screen"), (False, "print")):
            name = f"{page.stem}-{width}-{'print' if media == 'print' else 'dark' if dark else 'light'}"
            look(driver, width, 900, dark, media)
            driver.get(page.as_uri())
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            check(media == "print" or wide <= width, f"{name}: {wide} px wide")
            tall = driver.execute_script("return document.documentElement.scrollHeight")
            look(driver, width, min(tall, 8000), dark, media)
            picture = shot(driver)
            picture.save(shots / (name + ".png"))
            check_charts(driver, picture, name)
            check_parts(driver, name)
            check_console(driver, name)
            check_axe(driver, name, (width == 360) != dark)  # each width, light or dark


def press(driver, *keys):
    for key in keys:
        driver.switch_to.active_element.send_keys(key)


def tab_to(driver, selector):
    for _ in range(400):
        press(driver, Keys.TAB)
        if driver.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return
    check(False, f"no Tab leads to {selector}")


def check_keys(driver, page):
    look(driver, 1280, 900, False, "screen")
    driver.get(page.as_uri())
    names = "return Array.from(document.querySelectorAll('#runs tbody tr td:first-child')).map(" \
            "function(c){return c.textContent})"
    before = driver.execute_script(names)
    tab_to(driver, "#runs th button")
    press(driver, Keys.ENTER, Keys.ENTER)
    check(driver.execute_script(names) == sorted(before, reverse=True), "Enter does not sort the runs")
    tab_to(driver, ".key input")
    press(driver, Keys.SPACE)
    check(driver.execute_script("return document.querySelectorAll('.l.r0.off').length") > 0,
          "Space does not hide a run")
    tab_to(driver, "summary")
    press(driver, Keys.ENTER)
    check(driver.execute_script("return document.activeElement.parentNode.open"), "no table opens")
    tab_to(driver, ".time .scroll")
    press(driver, "+", "+")
    wide = driver.find_element(By.CSS_SELECTOR, ".time .scroll svg").get_attribute("width")
    check(wide == "400%", f"+ zooms to {wide}")
    press(driver, "0")
    check_console(driver, "keys")


def check_network(driver, page, address):
    driver.get(page.as_uri())
    answer = driver.execute_async_script(
        "var done=arguments[1];fetch(arguments[0]).then(function(){done('came')},"
        "function(){done('forbidden')})", address)
    check(answer == "forbidden", f"fetch {answer}")
    driver.execute_script("var i=new Image();i.src=arguments[0]+'image';document.body.append(i);"
                          "var s=document.createElement('script');s.src=arguments[0]+'script';"
                          "document.body.append(s)", address)
    driver.execute_async_script("setTimeout(arguments[0],500)")
    check(not asked, f"the network was asked for {asked}")
    driver.get_log("browser")


def check_hostile(driver, page):
    look(driver, 1280, 900, False, "screen")
    driver.get(page.as_uri())
    check(driver.title.startswith("sifr report"), f"a script of the folder ran: {driver.title}")
    check(driver.execute_script("return document.scripts.length") == 1, "a second script")
    check(driver.execute_script("return document.querySelectorAll('img,iframe,b').length") == 0,
          "markup of the folder is in the page")
    check_console(driver, "hostile")
    check_axe(driver, "hostile")


def main(shots, page, hostile):
    shots = pathlib.Path(shots)
    shots.mkdir(parents=True, exist_ok=True)
    page, hostile = pathlib.Path(page).resolve(), pathlib.Path(hostile).resolve()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    driver = browser()
    driver.set_script_timeout(300)  # axe-core, beside other work
    try:
        check_looks(driver, page, shots)
        check_keys(driver, page)
        check_network(driver, page, f"http://127.0.0.1:{server.server_port}/")
        check_hostile(driver, hostile)
        version = driver.capabilities["browserVersion"]
    finally:
        driver.quit()
        server.shutdown()
    print(f"chromium {version}: {len(list(shots.glob('*.png')))} screenshots in {shots}, "
          f"{len(failed)} wrong")
    sys.exit(bool(failed))


main(*sys.argv[1:])
