//! What a person does with a page: reads it, presses what it offers, and fills in its fields by their labels.

use std::net::SocketAddr;
use std::time::Duration;

use domain::user::UserLevel;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::WAIT_MAX;
use crate::support::browser::Browser;
use crate::support::gateway::TestGateway;
use crate::support::web::{Web, person};

/// Marks the one visible and enabled element of a kind with this text or label, and returns whether it is there.
const MARK: &str = "
    const [selector, text] = ARGUMENTS;
    const name = (it) => (it.getAttribute('aria-label') ?? it.textContent).trim().replace(/\\s+/g, ' ');
    const found = [...document.querySelectorAll(selector)]
        .filter((it) => it.checkVisibility() && !it.disabled && !it.ariaDisabled && name(it) === text);
    document.querySelectorAll('[data-marked]').forEach((it) => it.removeAttribute('data-marked'));
    found[0]?.setAttribute('data-marked', '');
    return found.length > 0;";

/// Marks the field with this label.
const MARK_FIELD: &str = "
    const [label] = ARGUMENTS;
    const named = [...document.querySelectorAll('input[aria-label]')].filter((it) => it.ariaLabel === label);
    const labelled = [...document.querySelectorAll('label')]
        .filter((it) => it.textContent.trim().replace(/\\s+/g, ' ').startsWith(label)).map((it) => it.control);
    const found = [...named, ...labelled].filter((it) => it?.checkVisibility() && !it.disabled);
    document.querySelectorAll('[data-marked]').forEach((it) => it.removeAttribute('data-marked'));
    found[0]?.setAttribute('data-marked', '');
    return found.length > 0;";

/// Remembers that a click is expected until the marked element gets it. Another page remembers nothing.
const EXPECT_CLICK: &str = "
    window.expectsClick = true;
    const arrived = () => { window.expectsClick = false };
    document.querySelector('[data-marked]')?.addEventListener('click', arrived, { capture: true, once: true });";

/// Time between two looks at the page.
const INTERVAL: Duration = Duration::from_millis(20);

const MARKED: &str = "[data-marked]";

/// A browser that shows the interface, used like a person would.
pub struct Page {
    pub web: Web,
    /// The clicks and filled fields so far, with their times.
    steps: Mutex<Vec<(Instant, String)>>,
    begun: Instant,
}

fn with(script: &str, arguments: Value) -> String {
    script.replace("ARGUMENTS", &arguments.to_string())
}

fn is_true(value: &Value) -> bool {
    value == &json!(true)
}

impl Page {
    pub fn new(web: Web) -> Page {
        Page { web, steps: Mutex::default(), begun: Instant::now() }
    }

    fn notes(&self, step: String) {
        self.steps.lock().push((Instant::now(), step));
    }

    /// Returns the number of clicks and filled fields so far.
    pub fn n_steps(&self) -> usize {
        self.steps.lock().len()
    }

    /// Writes each click and each filled field with the seconds since the start, for people, if `HEADWATER_STEPS` names a
    /// file.
    pub fn writes_steps(&self) {
        let Ok(file) = std::env::var("HEADWATER_STEPS") else { return };
        let line =
            |(at, step): &(Instant, String)| format!("{:6.1} s  {step}\n", (*at - self.begun).as_secs_f64());
        let mut lines: String = self.steps.lock().iter().map(line).collect();
        lines.push_str(&format!("{:6.1} s  done\n", self.begun.elapsed().as_secs_f64()));
        std::fs::write(file, lines).expect("HEADWATER_STEPS names a file");
    }

    /// Opens a path of the interface in a new browser.
    pub async fn open(address: SocketAddr, path: &str) -> Page {
        let page = Page::new(Web::at(address).await);
        page.web.opens(path).await;
        page
    }

    /// Opens a path as a new admin.
    pub async fn open_as_admin(gateway: &TestGateway, path: &str) -> Page {
        let admin = person(gateway, "anna", UserLevel::Admin).await;
        Page::new(Web::signed_in(gateway, &admin, path).await)
    }

    pub fn browser(&self) -> &Browser {
        &self.web.browser
    }

    /// Waits until the value of a script matches, and returns it. A failure names what the page shows instead.
    pub async fn until(&self, what: &str, script: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let value = self.browser().script(script).await;
            if fits(&value) {
                return value;
            }
            if Instant::now() > deadline {
                let shown =
                    self.browser().script("return location.href + ' ' + document.body.innerText").await;
                panic!("timeout waiting for {what}; last value {value}; the page shows: {shown}");
            }
            sleep(INTERVAL).await;
        }
    }

    /// Waits for a button, link or tab with this text or label, and clicks it.
    pub async fn presses(&self, text: &str) {
        self.clicks("button, a, [role=tab], [role=menuitem]", text).await;
    }

    /// Waits for an element of this kind with this text or label, and clicks it.
    pub async fn clicks(&self, selector: &str, text: &str) {
        self.clicks_marked(&format!("{selector} {text:?}"), &with(MARK, json!([selector, text]))).await;
        self.notes(format!("click {text:?}"));
    }

    /// Waits until a script has marked an element, and clicks it. The page may move or replace the element just before the
    /// click, and a person would click again.
    async fn clicks_marked(&self, what: &str, mark: &str) {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            self.until(what, mark, is_true).await;
            self.browser().script(EXPECT_CLICK).await;
            let is_clicked = self.browser().tries_to_click(MARKED).await;
            if is_clicked && self.browser().script("return window.expectsClick !== true").await == true {
                return;
            }
            assert!(Instant::now() < deadline, "timeout waiting for a click to arrive at {what}");
        }
    }

    /// Waits for the field with this label, and replaces its text.
    pub async fn fills(&self, label: &str, text: &str) {
        let mark = with(MARK_FIELD, json!([label]));
        self.until(&format!("the field {label:?}"), &mark, is_true).await;
        self.notes(format!("fill in {label:?}"));
        self.browser().types(MARKED, text).await;
    }

    /// Chooses an option of the list with this label.
    pub async fn chooses(&self, label: &str, option: &str) {
        let mark = with(MARK_FIELD, json!([label]));
        self.until(&format!("the field {label:?}"), &mark, is_true).await;
        let choose = "
            const [option] = ARGUMENTS;
            const list = document.querySelector('[data-marked]');
            const index = [...list.options].findIndex((it) => it.textContent.trim() === option);
            if (index < 0) return false;
            list.selectedIndex = index;
            list.dispatchEvent(new Event('change', { bubbles: true }));
            return true;";
        self.until(&format!("the option {option:?}"), &with(choose, json!([option])), is_true).await;
    }

    /// Waits for a field for files, and puts a zip archive into it.
    pub async fn chooses_archive(&self, content: &[u8]) {
        let choose = with(
            "const input = document.querySelector('input[type=file]');
             if (!input) return false;
             const files = new DataTransfer();
             files.items.add(new File([Uint8Array.from(ARGUMENTS)], 'plugin.zip', { type: 'application/zip' }));
             input.files = files.files;
             input.dispatchEvent(new Event('change', { bubbles: true }));
             return true;",
            json!(content),
        );
        self.until("the field for a file", &choose, is_true).await;
    }

    /// Waits until the page shows a text.
    pub async fn shows(&self, text: &str) {
        let script = with(
            "return document.body.innerText.replace(/\\s+/g, ' ').includes(ARGUMENTS[0])",
            json!([text]),
        );
        self.until(&format!("the text {text:?}"), &script, is_true).await;
    }

    /// Waits until the page no longer shows a text.
    pub async fn hides(&self, text: &str) {
        let script = with("return !document.body.innerText.includes(ARGUMENTS[0])", json!([text]));
        self.until(&format!("no text {text:?}"), &script, is_true).await;
    }

    /// Waits until the text of a script's value is this one.
    pub async fn until_is(&self, what: &str, script: &str, expected: Value) {
        self.until(what, script, |it| *it == expected).await;
    }

    /// Waits until a list shows rows with these texts in one column, and no others. The first column is 1.
    pub async fn lists(&self, label: &str, column: usize, texts: &[&str]) {
        let script = with(
            "const [label, column] = ARGUMENTS;
             const list = [...document.querySelectorAll('table')].find((it) => it.ariaLabel === label);
             return [...(list?.querySelectorAll('tbody tr') ?? [])]
                 .map((it) => it.querySelector(`td:nth-child(${column})`))
                 // Names are in an element of their own, beside logos.
                 .map((it) => (it?.querySelector('bdi') ?? it)?.innerText.trim() ?? '')",
            json!([label, column]),
        );
        self.until_is(&format!("{texts:?} in {label}"), &script, json!(texts)).await;
    }

    /// Clicks the check box of a row of a list. The first row is 1.
    pub async fn selects(&self, label: &str, row: usize) {
        let mark = with(
            "const [label, row] = ARGUMENTS;
             const list = [...document.querySelectorAll('table')].find((it) => it.ariaLabel === label);
             const box = list?.querySelector(`tbody tr:nth-child(${row}) input[type=checkbox]`);
             document.querySelectorAll('[data-marked]').forEach((it) => it.removeAttribute('data-marked'));
             box?.setAttribute('data-marked', '');
             return !!box;",
            json!([label, row]),
        );
        self.clicks_marked(&format!("row {row} of {label}"), &mark).await;
        self.notes(format!("click the box of row {row} of {label:?}"));
    }

    /// Presses keys in the focused element, one after the other. Special keys are those of WebDriver.
    pub async fn types_keys(&self, keys: &str) {
        for key in keys.chars() {
            self.browser().presses(&key.to_string()).await;
        }
    }

    /// Returns the name of the focused element.
    pub async fn focused(&self) -> String {
        let script = "
            const it = document.activeElement;
            const name = it.getAttribute('aria-label') ?? it.labels?.[0]?.textContent ?? it.textContent ?? '';
            return name.replace('*', '').trim()";
        self.browser().script(script).await.as_str().unwrap_or_default().to_owned()
    }
}
