//! Every page of the web interface, checked by axe-core in both themes, on phones and on desktops.

/// These need a browser, and axe-core from `just tools`.
pub mod slow {
    use domain::user::UserLevel;
    use serde_json::Value;

    use crate::support::gateway::TestGateway;
    use crate::support::signal::Picture;
    use crate::support::upstream::Provider;
    use crate::support::web::{Web, person};

    /// Width of a phone and of a desktop, in CSS pixels, with the height.
    const PHONE: (u32, u32) = (375, 812);
    const DESKTOP: (u32, u32) = (1280, 800);
    const AXE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/npm/node_modules/axe-core/axe.min.js");

    const ALL_RULES: &str = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";
    const COLOUR_RULES: &str = "['color-contrast', 'link-in-text-block']";
    /// Size, theme and rules of each look at a page: by day each size and each theme once with all rules.
    type Look = ((u32, u32), &'static str, &'static str);
    const BY_DAY: [Look; 2] = [(PHONE, "light", ALL_RULES), (DESKTOP, "dark", ALL_RULES)];
    const AT_NIGHT: [Look; 4] = [
        (PHONE, "light", ALL_RULES),
        (PHONE, "dark", COLOUR_RULES),
        (DESKTOP, "light", ALL_RULES),
        (DESKTOP, "dark", COLOUR_RULES),
    ];
    /// Runs axe-core, and returns the rule, the reason and the elements of each violation.
    const VIOLATIONS: &str = "const found = await axe.run(document, { runOnly: RULES, resultTypes: ['violations'] });
        return found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => `${node.target} ${node.failureSummary}`)}`)";
    /// Whether the page is wider than the window.
    const SCROLLS_SIDEWAYS: &str = "return document.documentElement.scrollWidth > innerWidth
        || document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth";

    /// Checks the page at this path. It is loaded once, on a phone; then it follows the window and the theme, as it does
    /// when somebody turns a tablet or when the evening begins.
    pub async fn check(web: &Web, axe: &str, path: &str) {
        look(web, axe, path, &BY_DAY).await;
    }

    async fn look(web: &Web, axe: &str, path: &str, looks: &[Look]) {
        let (width, height) = PHONE;
        web.browser.resizes(width, height).await;
        web.opens(path).await;
        web.has("main h1, main h2").await;
        let idle = "return document.querySelector('main [role=status][aria-label=Loading]') === null";
        web.browser.until("the page has loaded", idle, |it| *it == true).await;
        web.browser.script(axe).await;
        for ((width, height), theme, rules) in looks {
            web.browser.resizes(*width, *height).await;
            let resized = format!("return innerWidth === {width} && {}", idle.trim_start_matches("return "));
            web.browser.until("the size", &resized, |it| *it == true).await;
            web.browser.prefers(theme).await;
            let found = web.browser.script(&VIOLATIONS.replace("RULES", rules)).await;
            let violations = found.as_array().cloned().unwrap_or_else(|| vec![found]);
            assert!(violations.is_empty(), "{path} {theme} {width}: {violations:#?}");
            let scrolls = web.browser.script(SCROLLS_SIDEWAYS).await;
            assert_eq!(scrolls, Value::Bool(false), "{path} scrolls sideways at {width}");
            web.has_no_height_by_basis().await;
        }
        web.is_clean().await;
    }

    /// Returns the script of axe-core.
    pub fn axe() -> String {
        std::fs::read_to_string(AXE).expect("just tools installs axe-core")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_sign_in_has_no_barriers() {
        let provider = Provider::start();
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
        person(&gateway, "root", UserLevel::Admin).await;
        check(&Web::at(gateway.address).await, &axe(), "/").await;
    }

    /// Looks at these pages as an admin, while a channel plays and names are long and contain HTML.
    async fn audit(pages: &[&str], looks: &[Look]) {
        let provider = Provider::start();
        provider.path("/news.ts").plays(Picture::new("news"));
        let name = "خبر <b>News</b> ".repeat(30);
        let list = provider.playlist(&[("news", &name, "/news.ts"), ("late", "Late", "/late.ts")]);
        let gateway = TestGateway::with_list(&list).await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let channel = gateway.models().channels.load().iter().next().map(|it| it.uuid).unwrap();
        let path = format!("/proxy/ts/stream/{channel}");
        let player = crate::support::client::Player::watch(gateway.address, &path).await;
        player.sees("news").await;
        let web = Web::signed_in(&gateway, &root, "/now").await;
        web.has("main h1").await;
        let axe = axe();
        for page in pages {
            let page =
                page.replace("{channel}", &channel.to_string()).replace("{user}", &root.id.to_string());
            look(&web, &axe, &page, looks).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pages_of_what_plays_have_no_barriers() {
        audit(&PLAYING, &BY_DAY).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pages_of_channels_and_sources_have_no_barriers() {
        audit(&CHANNELS, &BY_DAY).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pages_of_users_and_settings_have_no_barriers() {
        audit(&USERS, &BY_DAY).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pages_of_automation_have_no_barriers() {
        audit(&AUTOMATION, &BY_DAY).await;
    }

    mod night {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn the_pages_of_an_admin_have_no_barriers() {
            let all: Vec<&str> = [&PLAYING[..], &CHANNELS, &USERS, &AUTOMATION].concat();
            audit(&all, &AT_NIGHT).await;
        }
    }

    const PLAYING: [&str; 9] = [
        "/now",
        "/now/viewers",
        "/now/{channel}",
        "/slots",
        "/guide",
        "/watch",
        "/watch/{channel}",
        "/library",
        "/health",
    ];
    const CHANNELS: [&str; 13] = [
        "/channels",
        "/channels/1",
        "/channels/new",
        "/channels/groups",
        "/channels/guides",
        "/streams",
        "/streams/1",
        "/sources",
        "/sources?kind=guides",
        "/sources/new",
        "/sources/new?kind=guides",
        "/lineups",
        "/logos",
    ];
    const USERS: [&str; 9] = [
        "/users",
        "/users/{user}",
        "/users/new",
        "/users/permissions",
        "/settings",
        "/settings/backups",
        "/settings/profiles",
        "/me",
        "/setup",
    ];
    const AUTOMATION: [&str; 9] = [
        "/integrations",
        "/integrations/new",
        "/integrations?show=queue",
        "/integrations?show=log",
        "/plugins",
        "/plugins?show=install",
        "/activity",
        "/activity?tab=undo",
        "/activity?tab=changes",
    ];
}
