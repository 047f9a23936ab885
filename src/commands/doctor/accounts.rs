//! Checks of the accounts: name resolution, reachability, login, expiry, connections in use, and the clock.

use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;

use actors::{Fetch, FetchLimits, ask_panel, now_ms};
use config::{Config, DataFolder};
use domain::account::{Account, PlaylistLocation};
use domain::egress::Reach;
use domain::panel::{PanelAnswer, PanelLogin};
use domain::source_url::SourceUrl;
use domain::time::iso_millis;
use node::tls::install_tls;
use rest::gateway_conditions::EXPIRY_NOTICE_MS;
use services::http_client::fetch;
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::{CheckReport, Finding};
use crate::control::{self, ControlReply, ControlRequest};

/// Maximum time for the answer of one provider.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// A name that takes longer than this to resolve is reported: each start of a stream waits for it.
const RESOLUTION_SLOW: Duration = Duration::from_secs(1);
/// A difference between the clocks of this machine and of a provider that is reported, in seconds.
const CLOCK_SECONDS_MAX: u64 = 60;

pub(super) fn check(config: &Config, folder: &DataFolder, report: &mut CheckReport) {
    if !folder.store().exists() {
        report.add(Finding::good("accounts", "there is no store yet"));
        return;
    }
    let accounts = match control::run(folder, ControlRequest::ListAccounts) {
        Ok(ControlReply::Accounts { accounts }) => accounts,
        Ok(_) => {
            let message = "the running gateway answered something else";
            report.add(Finding::problem(
                "store",
                message,
                "Restart the gateway, so that both have one version.",
            ));
            return;
        }
        Err(error) => {
            report.add(Finding::problem("store", format!("{error:#}"), "Run `headwater check`."));
            return;
        }
    };
    let n_accounts = accounts.iter().filter(|it| !it.is_custom()).count();
    report.add(Finding::good("store", format!("{n_accounts} account(s)")));
    install_tls();
    let runtime = Builder::new_current_thread().enable_all().build();
    let (fetch, runtime) = match (fetch(config), runtime) {
        (Ok(fetch), Ok(runtime)) => (fetch.within(limits()), runtime),
        (Err(error), _) => return report.add(Finding::problem("accounts", error.to_string(), "")),
        (_, Err(error)) => return report.add(Finding::problem("accounts", error.to_string(), "")),
    };
    for account in accounts.iter().filter(|it| it.is_active && !it.is_custom()) {
        let subject = format!("account \"{}\"", account.name);
        // A proxy resolves names itself.
        let resolved = address_of(account).filter(|_| account.proxy.is_none());
        if let Some(slow) = resolved.and_then(|it| resolution_finding(&subject, it)) {
            report.add(slow);
        }
        for finding in runtime.block_on(findings(&fetch, account, &subject)) {
            report.add(finding);
        }
    }
}

fn limits() -> FetchLimits {
    FetchLimits { read_timeout: ANSWER_TIMEOUT, total_timeout: ANSWER_TIMEOUT, ..FetchLimits::default() }
}

/// Returns the address of the provider of an account.
fn address_of(account: &Account) -> Option<&SourceUrl> {
    match &account.list {
        PlaylistLocation::Url(url) => Some(url),
        list => list.panel().map(|it| &it.server),
    }
}

/// Returns a finding if the name of a server resolves slowly. One that does not resolve is reported by the request.
fn resolution_finding(subject: &str, address: &SourceUrl) -> Option<Finding> {
    let host = address.host()?;
    let began = Instant::now();
    (host, 80).to_socket_addrs().ok()?;
    let took = began.elapsed();
    (took > RESOLUTION_SLOW).then(|| {
        let message = format!("the name {host} took {:.1} s to resolve", took.as_secs_f64());
        Finding::warning(subject, message, "Use a faster name server, or one on this machine.")
    })
}

/// Asks the provider of an account.
async fn findings(fetch: &Fetch, account: &Account, subject: &str) -> Vec<Finding> {
    match &account.list {
        PlaylistLocation::Url(url) => vec![list_finding(fetch, account, subject, url).await],
        PlaylistLocation::File(path) => vec![file_finding(subject, Path::new(path))],
        list => match list.panel() {
            Some(_) => panel_findings(fetch, account, subject).await,
            None if list.portal().is_some() => {
                vec![Finding::good(subject, "has a portal, which only refreshes and viewers ask")]
            }
            None => vec![Finding::good(subject, "has an uploaded playlist")],
        },
    }
}

async fn list_finding(fetch: &Fetch, account: &Account, subject: &str, url: &SourceUrl) -> Finding {
    const ADVICE: &str = "Open the address of the playlist in a browser on this machine; ask the provider.";
    let reach = Reach::typed(account.allowed_networks);
    let fetch = fetch.to_account_servers(account);
    let first = async { fetch.get(url.expose(), &account.headers, reach).await?.next().await };
    match first.await {
        Ok(Some(_)) => Finding::good(subject, "the server sends a playlist"),
        Ok(None) => Finding::problem(subject, "the server sends an empty playlist", ADVICE),
        Err(error) => Finding::problem(subject, error.with_causes(), ADVICE),
    }
}

fn file_finding(subject: &str, path: &Path) -> Finding {
    match std::fs::metadata(path) {
        Ok(_) => Finding::good(subject, "its file is there"),
        Err(error) => Finding::problem(
            subject,
            format!("its file {} cannot be read: {error}", path.display()),
            "Put the playlist back, or give the account another one.",
        ),
    }
}

async fn panel_findings(fetch: &Fetch, account: &Account, subject: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for profile in account.active_profiles() {
        let subject = match profile.is_default {
            true => subject.to_owned(),
            false => format!("{subject}, profile \"{}\"", profile.name),
        };
        let Some(login) = account.panel_login_of(profile) else {
            let message = "its pattern does not lead to a login of the panel";
            found.push(Finding::problem(&subject, message, "Correct the patterns of the profile."));
            continue;
        };
        found.extend(login_findings(fetch, account, &subject, &login).await);
    }
    found
}

async fn login_findings(fetch: &Fetch, account: &Account, subject: &str, login: &PanelLogin) -> Vec<Finding> {
    let answer = match ask_panel(fetch, account, login).await {
        Ok(answer) => answer,
        Err(error) => {
            return vec![Finding::problem(
                subject,
                error.sentence(),
                "Check the address of the panel; ask the provider.",
            )];
        }
    };
    let login = login_finding(subject, &answer, now_ms());
    [Some(login), clock_finding(&answer, now_ms())].into_iter().flatten().collect()
}

/// Returns what the answer of a panel says about a login, at a time in milliseconds since 1970.
fn login_finding(subject: &str, answer: &PanelAnswer, now: i64) -> Finding {
    if let Some(reason) = answer.state.refusal() {
        return Finding::problem(subject, reason, "Check user name and password; renew the account.");
    }
    let used = answer.user_info.get("active_cons").map(|it| it.to_string().trim_matches('"').to_owned());
    let limit = answer.max_connections.map_or_else(|| "an unknown number of".to_owned(), |it| it.to_string());
    let mut message = format!(
        "the panel accepts the login; {} of {limit} connections in use",
        used.unwrap_or("?".to_owned())
    );
    let Some(expires_at) = answer.expires_at else { return Finding::good(subject, message) };
    message += &format!("; valid until {}", iso_millis(expires_at));
    if expires_at <= now {
        return Finding::problem(subject, message, "The account has expired: renew it.");
    }
    if expires_at - now < EXPIRY_NOTICE_MS {
        return Finding::warning(subject, message, "The account expires within a week: renew it.");
    }
    Finding::good(subject, message)
}

/// Returns a finding if the clock of a panel and that of this machine differ. The time is in milliseconds since 1970.
fn clock_finding(answer: &PanelAnswer, now: i64) -> Option<Finding> {
    let theirs = answer.server_info.get("timestamp_now")?;
    let theirs = theirs.as_i64().or_else(|| theirs.as_str()?.trim().parse().ok())?;
    let differ = (now / 1000).abs_diff(theirs);
    (differ > CLOCK_SECONDS_MAX).then(|| {
        Finding::warning(
            "clock",
            format!("this machine and a panel differ by {differ} s"),
            "Synchronise the clock (`timedatectl set-ntp true`); guides, schedules and expiry depend on it.",
        )
    })
}

#[cfg(test)]
mod tests {
    use domain::panel::PanelAnswer;

    use super::*;
    use crate::commands::doctor::Verdict;

    const NOW: i64 = 1_700_000_000_000;

    #[track_caller]
    fn check_login(answer: &str, expected: Verdict, part: &str) {
        let finding = login_finding("a", &PanelAnswer::read(answer.as_bytes()).unwrap(), NOW);
        assert_eq!(finding.verdict, expected, "{finding}");
        assert!(finding.message.contains(part), "{finding}");
    }

    #[test]
    fn a_login_is_good_until_it_is_about_to_expire() {
        let answer = |expiry: i64| {
            format!(
                r#"{{"user_info":{{"auth":1,"status":"Active","active_cons":"1","max_connections":"2","exp_date":"{expiry}"}}}}"#
            )
        };
        const DAY: i64 = 24 * 60 * 60;
        check_login(
            &answer(NOW / 1000 + 30 * DAY),
            Verdict::Good,
            "1 of 2 connections in use; valid until 2023-12-14",
        );
        check_login(&answer(NOW / 1000 + 3 * DAY), Verdict::Warning, "valid until 2023-11-17");
        check_login(&answer(NOW / 1000 - DAY), Verdict::Problem, "valid until 2023-11-13");
        check_login(r#"{"user_info":{"auth":0}}"#, Verdict::Problem, "refuses the user name or the password");
    }

    #[test]
    fn a_clock_that_is_wrong_by_more_than_a_minute_is_reported() {
        let differs = |theirs: &str| {
            let text = format!(r#"{{"user_info":{{"auth":1}},"server_info":{{"timestamp_now":{theirs}}}}}"#);
            clock_finding(&PanelAnswer::read(text.as_bytes()).unwrap(), NOW).is_some()
        };
        assert!(!differs("1700000030"));
        assert!(differs("1700000090"));
        assert!(differs("\"1699990000\""));
        assert!(!differs("null"));
    }
}
