//! Messages about outcomes: they have room of their own, and are announced.

use serde_json::json;

use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

/// Names of the visible controls that a message covers.
const COVERED: &str = "
    // A dialog, and on phones a panel, covers everything else anyway.
    const part = document.querySelector('[role=log] p').closest('dialog, section, body');
    return [...part.querySelectorAll('button, a, input, select')].filter((it) => {
        if (!it.checkVisibility() || it.closest('[role=log]')) return false;
        const at = it.getBoundingClientRect();
        const [x, y] = [at.left + at.width / 2, at.top + at.height / 2];
        // What its own part of the page has scrolled away can be scrolled back.
        for (let outer = it.parentElement; outer; outer = outer.parentElement) {
            const clip = outer.getBoundingClientRect();
            const hides = getComputedStyle(outer).overflowY !== 'visible';
            if (hides && (y < clip.top || y >= clip.bottom || x < clip.left || x >= clip.right)) return false;
        }
        return document.elementFromPoint(x, y)?.closest('[role=log]');
    }).map((it) => it.ariaLabel ?? it.textContent.trim())";
const MESSAGES: &str = "return [...document.querySelectorAll('[role=log] p')].map((it) => it.textContent)";

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_message_covers_no_control_on_desktops_phones_and_in_dialogs() {
        let list: String =
            (1..=40).map(|n| format!("#EXTINF:-1,Channel {n}\nhttp://127.0.0.1:9/{n}.ts\n")).collect();
        let gateway = TestGateway::with_list(&format!("#EXTM3U\n{list}")).await;
        let page = Page::open_as_admin(&gateway, "/channels/1").await;
        for (width, height) in [(1280, 800), (375, 812)] {
            page.browser().resizes(width, height).await;
            page.fills("Name", &format!("Renamed {width}")).await;
            page.presses("Save").await;
            page.until_is("the message", MESSAGES, json!(["Saved."])).await;
            assert_eq!(page.browser().script(COVERED).await, json!([]), "{width}");
            // A dialog makes everything below it inert: the message moves into it.
            page.presses("Suggestions for the guide").await;
            let inside = "return document.querySelector('dialog[open] [role=log]')?.textContent.trim()";
            page.until_is("the message in the dialog", inside, json!("Saved.")).await;
            page.clicks("dialog[open] [role=log] button", "Close").await;
            page.until_is("no message", MESSAGES, json!([])).await;
            page.clicks("dialog[open] header button", "Close").await;
        }
        page.web.is_clean().await;
    }
}
