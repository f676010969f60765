//! A browser without a screen, driven by the WebDriver protocol.
//!
//! Each test has a browser of its own, with an empty profile; one runs at a time, so that what is
//! measured in one is not the work of another. The browser ends with the test, also if it fails.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// How long the browser may take for anything that it is asked.
const PATIENCE: Duration = Duration::from_secs(60);

const FLAGS: [&str; 14] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,900",
];

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A browser that runs.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    /// Starts a browser; where there is none, says that the test is skipped, and why.
    pub(crate) fn start() -> Option<Self> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(driver) = tool(&["chromedriver"]) else {
            return skipped("no chromedriver (Debian: apt-get install chromium-driver)");
        };
        let Some(binary) = tool(&["chromium", "chromium-browser", "google-chrome"]) else {
            return skipped("no Chromium (Debian: apt-get install chromium)");
        };
        let mut command = Command::new(driver);
        command.args(["--port=0", "--log-level=SEVERE"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = match command.spawn() {
            Ok(driver) => driver,
            Err(error) => return skipped(&format!("chromedriver does not start: {error}")),
        };
        let Some(port) = port_of(&mut driver) else {
            end(&mut driver);
            return skipped("chromedriver does not say where it listens");
        };
        let profile = tempfile::tempdir().expect("there is room for a profile");
        let asked = capabilities(&binary, profile.path());
        match request(port, "POST", "/session", &asked) {
            Ok(value) => {
                let session = value["sessionId"].as_str().expect("a session has a name").to_owned();
                Some(Self { driver, port, session, _profile: profile, _turn: turn })
            }
            Err(error) => {
                end(&mut driver);
                skipped(&format!("the browser does not start: {error}"))
            }
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        request(self.port, method, &path, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Opens the page in the file `path`.
    pub(crate) fn open(&self, path: &Path) {
        self.ask("POST", "/url", &json!({ "url": format!("file://{}", path.display()) }));
    }

    /// What the function body `script` returns in the page.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The same as text.
    #[track_caller]
    pub(crate) fn text(&self, script: &str) -> String {
        self.run(script).as_str().expect("it is a text").to_owned()
    }

    /// Waits until the expression `condition` holds in the page.
    #[track_caller]
    pub(crate) fn wait_for(&self, condition: &str) {
        let script = format!(
            "const done = arguments[0]; const look = () => ({condition}) ? done(true) \
             : setTimeout(look, 10); look();"
        );
        self.ask("POST", "/execute/async", &json!({ "script": script, "args": [] }));
    }

    /// Clicks what the selector `css` names.
    pub(crate) fn click(&self, css: &str) {
        let found = self.ask("POST", "/element", &json!({ "using": "css selector", "value": css }));
        let id = found.as_object().and_then(|found| found.values().next()?.as_str());
        let id = id.expect("an element has a name");
        self.ask("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Presses and lets go the keys of `keys`, one after the other.
    pub(crate) fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|key| {
            ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
        });
        let strokes: Vec<Value> = strokes.collect();
        let keyboard = json!([{ "type": "key", "id": "keyboard", "actions": strokes }]);
        self.ask("POST", "/actions", &json!({ "actions": keyboard }));
    }

    /// Asks the developer tools.
    pub(crate) fn tools(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.ask("POST", "/goog/cdp/execute", &body)
    }

    /// Sets how wide the page is, and whether the reader likes it dark.
    pub(crate) fn look(&self, width: u32, height: u32, scheme: &str) {
        self.tools(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.tools("Emulation.setEmulatedMedia", &json!({ "features": scheme }));
    }

    /// The messages that the browser logged since it was last asked, of `kind` browser or
    /// performance.
    pub(crate) fn log(&self, kind: &str) -> Vec<String> {
        let entries = self.ask("POST", "/se/log", &json!({ "type": kind }));
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.iter().filter_map(|entry| Some(entry["message"].as_str()?.to_owned())).collect()
    }

    /// Keeps a picture of the page, among the artefacts of the build.
    pub(crate) fn screenshot(&self, name: &str) {
        // What was asked for last is drawn two frames later.
        let frames = "const done = arguments[0]; \
                      requestAnimationFrame(() => requestAnimationFrame(() => done(true)));";
        self.ask("POST", "/execute/async", &json!({ "script": frames, "args": [] }));
        let picture = self.ask("GET", "/screenshot", &Value::Null);
        let bytes = decoded(picture.as_str().expect("a picture is a text"));
        let path = artefacts().join(format!("{name}.png"));
        std::fs::write(&path, bytes).expect("there is room for a picture");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let asked = json!({ "type": "browser" });
            let log =
                request(self.port, "POST", &format!("/session/{}/se/log", self.session), &asked);
            println!("the browser says: {log:?}");
        }
        // Ends the browser; then nothing is left for its driver to do.
        _ = request(self.port, "DELETE", &format!("/session/{}", self.session), &Value::Null);
        end(&mut self.driver);
    }
}

/// Where pictures and pages are kept: `browser` in the folder for what tests leave.
pub(crate) fn artefacts() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&folder).expect("there is room for a folder");
    folder
}

fn end(driver: &mut Child) {
    _ = driver.kill();
    _ = driver.wait();
}

/// Whether the environment asks that pages are looked at: then a browser that does not start is a
/// failure.
const REQUIRED: (&str, &str) = ("REWEAVE_BROWSER", "required");

fn skipped<T>(why: &str) -> Option<T> {
    let (name, value) = REQUIRED;
    let is_required = std::env::var_os(name).is_some_and(|asked| asked == value);
    assert!(!is_required, "{name}={value} is set, but {why}");
    // Past the harness, which hides what tests that pass say.
    _ = writeln!(std::io::stderr(), "SKIPPED, NOT TESTED: pages in a browser: {why}");
    None
}

/// Where the first of `names` that is there is.
fn tool(names: &[&str]) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    paths.into_iter().find(|path| path.is_file())
}

/// Where `driver` says that it listens.
fn port_of(driver: &mut Child) -> Option<u16> {
    let mut lines = BufReader::new(driver.stdout.take()?).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim().trim_end_matches('.').parse().ok()
    });
    // Whatever else it says is let go, so that it never waits to be read.
    std::thread::spawn(move || lines.for_each(drop));
    port
}

fn capabilities(binary: &Path, profile: &Path) -> Value {
    let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    flags.push(format!("--user-data-dir={}", profile.display()));
    let options = json!({ "binary": binary, "args": flags });
    let logged = json!({ "browser": "ALL", "performance": "ALL" });
    json!({ "capabilities": { "alwaysMatch": {
        "goog:chromeOptions": options, "goog:loggingPrefs": logged } } })
}

/// The value that the driver at `port` answers with, or what it says is wrong.
fn request(port: u16, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let answer = exchanged(port, method, path, body).map_err(|error| error.to_string())?;
    let mut answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    let value = answer["value"].take();
    match value["error"].as_str() {
        Some(error) => Err(format!("{error}: {}", value["message"])),
        None => Ok(value),
    }
}

/// The body of the answer to one request.
fn exchanged(port: u16, method: &str, path: &str, body: &Value) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    Ok(answer)
}

/// The bytes of a text in base 64.
fn decoded(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text.bytes().filter_map(|byte| letters.iter().position(|&other| other == byte));
    let values: Vec<usize> = values.collect();
    let group = |group: &[usize]| {
        let at = |place: usize| group.get(place).copied().unwrap_or(0);
        let bits = (at(0) << 18) | (at(1) << 12) | (at(2) << 6) | at(3);
        let bytes = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
        bytes.into_iter().take(group.len() - 1).collect::<Vec<u8>>()
    };
    values.chunks(4).flat_map(group).collect()
}
