//! The web interface in a browser.

use std::net::SocketAddr;

use domain::user::UserLevel;
use serde_json::Value;
use services::auth::hash_password;

use super::browser::Browser;
use super::gateway::TestGateway;
use super::users::{TestUser, create_user};

/// Password of the users who sign in to the interface.
pub const PASSWORD: &str = "correct horse battery";

/// Returns the visible elements of columns whose height is a basis of `flex` that was meant as a width, such as `1 1 12rem`.
const HEIGHTS_BY_BASIS: &str = "
    const isColumn = (it) => it.display.endsWith('flex') && it.flexDirection.startsWith('column');
    const isLength = (basis) => /^[0-9.]+px$/.test(basis) && parseFloat(basis) > 0;
    return [...document.querySelectorAll('body *')]
        .filter((it) => it.checkVisibility() && isLength(getComputedStyle(it).flexBasis))
        .filter((it) => isColumn(getComputedStyle(it.parentElement)))
        .map((it) => `${it.outerHTML.slice(0, 200)}: ${it.offsetHeight} px`);";

/// A browser that shows the interface of a gateway.
pub struct Web {
    pub browser: Browser,
    host: SocketAddr,
}

/// Creates a user who can sign in.
pub async fn person(gateway: &TestGateway, name: &str, level: UserLevel) -> TestUser {
    create_user(gateway, name, |it| {
        it.level = level;
        it.password = Some(hash_password(PASSWORD));
    })
    .await
}

impl Web {
    /// Starts a browser, without opening a page.
    pub async fn at(host: SocketAddr) -> Web {
        Web { browser: Browser::start().await, host }
    }

    /// Starts a browser and signs in at this path.
    pub async fn signed_in(gateway: &TestGateway, user: &TestUser, path: &str) -> Web {
        let web = Web::at(gateway.address).await;
        web.opens(path).await;
        web.signs_in(&user.name).await;
        web
    }

    pub async fn opens(&self, path: &str) {
        self.browser.opens(&format!("http://{}{path}", self.host)).await;
    }

    /// Fills the form of the sign-in.
    pub async fn signs_in(&self, name: &str) {
        self.signs_in_as(name, PASSWORD).await;
    }

    pub async fn signs_in_as(&self, name: &str, password: &str) {
        self.has("input[name=password]").await;
        self.browser.types("input[name=username]", name).await;
        self.browser.types("input[name=password]", password).await;
        self.browser.clicks("button[type=submit]").await;
    }

    /// Waits until an element exists.
    pub async fn has(&self, selector: &str) {
        let script = format!("return document.querySelector({}) !== null", Value::from(selector));
        self.browser.until(selector, &script, |it| *it == true).await;
    }

    /// Waits until the text of an element contains these words.
    pub async fn reads(&self, selector: &str, words: &str) {
        let script = format!("return document.querySelector({})?.textContent ?? ''", Value::from(selector));
        let has = |it: &Value| it.as_str().is_some_and(|it| it.contains(words));
        self.browser.until(&format!("{words:?} in {selector}"), &script, has).await;
    }

    /// Waits until the address has this path.
    pub async fn is_at(&self, path: &str) {
        self.browser.until(path, "return location.pathname + location.search", |it| *it == path).await;
    }

    /// Clicks the first button, link or entry of a menu with this text or label.
    pub async fn clicks(&self, text: &str) {
        let find = format!(
            "const all = [...document.querySelectorAll('button, a, [role=menuitem], [role=tab]')];
             const wanted = {};
             const it = all.find((it) => it.textContent.trim() === wanted || it.ariaLabel === wanted);
             it?.click();
             return it !== undefined",
            Value::from(text)
        );
        self.browser.until(&format!("a button {text:?}"), &find, |it| *it == true).await;
    }

    /// Checks that no element of a column is as high as it would be wide in a line.
    pub async fn has_no_height_by_basis(&self) {
        let found = self.browser.script(HEIGHTS_BY_BASIS).await;
        assert_eq!(found, Value::Array(Vec::new()));
    }

    /// Checks that nothing failed on the console, and that nothing was requested from elsewhere.
    pub async fn is_clean(&self) {
        let console = self.browser.console().await;
        assert!(console.is_empty(), "{console:#?}");
        let own = format!("://{}/", self.host);
        let foreign = |it: &String| {
            !it.contains(&own)
                && !["data:", "blob:", "about:", "chrome:"].iter().any(|own| it.starts_with(own))
        };
        let foreign: Vec<String> = self.browser.requested().await.into_iter().filter(foreign).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
    }
}
