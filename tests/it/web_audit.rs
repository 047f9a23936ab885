//! Every page of the web interface, checked by axe-core in both themes, on phones and on desktops.

/// These need a browser, and axe-core from `just tools`.
pub mod slow {
    use domain::user::UserLevel;
    use serde_json::Value;

    use crate::support::gateway::TestGateway;
    use crate::support::signal::Picture;
    use crate::support::upstream::Provider;
    use crate::support::web::{Web, person};

    /// Widths of a phone and of a desktop, in CSS pixels, with a height each.
    const SIZES: [(u32, u32); 2] = [(375, 812), (1280, 800)];
    const AXE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/npm/node_modules/axe-core/axe.min.js");

    const ALL_RULES: &str = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";
    const COLOUR_RULES: &str = "['color-contrast', 'link-in-text-block']";
    /// Runs axe-core, and returns the rule, the reason and the elements of each violation.
    const VIOLATIONS: &str = "const found = await axe.run(document, { runOnly: RULES, resultTypes: ['violations'] });
        return found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => `${node.target} ${node.failureSummary}`)}`)";
    /// Whether the page is wider than the window.
    const SCROLLS_SIDEWAYS: &str = "return document.documentElement.scrollWidth > innerWidth
        || document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth";

    /// Checks the page at this path. It is loaded once, on a phone; then it follows the window and the theme, as it does
    /// when somebody turns a tablet or when the evening begins. Only the rules about colours depend on the theme.
    pub async fn check(web: &Web, axe: &str, path: &str) {
        let (width, height) = SIZES[0];
        web.browser.resizes(width, height).await;
        web.opens(path).await;
        web.has("main h1, main h2").await;
        let idle = "return document.querySelector('main [role=status][aria-label=Loading]') === null";
        web.browser.until("the page has loaded", idle, |it| *it == true).await;
        web.browser.script(axe).await;
        for (width, height) in SIZES {
            web.browser.resizes(width, height).await;
            let resized = format!("return innerWidth === {width} && {}", idle.trim_start_matches("return "));
            web.browser.until("the size", &resized, |it| *it == true).await;
            for (theme, rules) in [("light", ALL_RULES), ("dark", COLOUR_RULES)] {
                web.browser.prefers(theme).await;
                let found = web.browser.script(&VIOLATIONS.replace("RULES", rules)).await;
                let violations = found.as_array().cloned().unwrap_or_else(|| vec![found]);
                assert!(violations.is_empty(), "{path} {theme} {width}: {violations:#?}");
            }
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pages_of_an_admin_have_no_barriers() {
        let provider = Provider::start();
        provider.path("/news.ts").plays(Picture::new("news"));
        let name = "خبر <b>News</b> ".repeat(30);
        let list = provider.playlist(&[("news", &name, "/news.ts"), ("late", "Late", "/late.ts")]);
        let gateway = TestGateway::with_list(&list).await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let path = gateway.models().channels.load().iter().next().map(|it| it.uuid).unwrap();
        let player =
            crate::support::client::Player::watch(gateway.address, &format!("/proxy/ts/stream/{path}")).await;
        player.sees("news").await;
        let web = Web::signed_in(&gateway, &root, "/now").await;
        web.has("main h1").await;
        let axe = axe();
        for page in PAGES {
            check(&web, &axe, page).await;
        }
        for page in [format!("/now/{path}"), format!("/watch/{path}"), format!("/users/{}", root.id)] {
            check(&web, &axe, &page).await;
        }
    }

    const PAGES: [&str; 32] = [
        "/now",
        "/slots",
        "/channels",
        "/streams",
        "/sources",
        "/sources?kind=guides",
        "/sources/new?kind=guides",
        "/channels/guides",
        "/channels/1",
        "/streams/1",
        "/channels/new",
        "/sources/new",
        "/users/new",
        "/lineups",
        "/guide",
        "/logos",
        "/watch",
        "/library",
        "/users",
        "/settings",
        "/health",
        "/integrations",
        "/integrations/new",
        "/integrations?show=queue",
        "/integrations?show=log",
        "/plugins",
        "/plugins?show=install",
        "/activity",
        "/activity?tab=undo",
        "/activity?tab=changes",
        "/me",
        "/setup",
    ];
}
