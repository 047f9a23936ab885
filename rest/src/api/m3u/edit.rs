//! The edit of an account, checked before anything is written.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use actors::check_cron;
use config::check_node_name;
use domain::account::{Account, PlaylistLocation, Rule};
use domain::auto_sync::{ORPHAN_CLEANUP, OrphanCleanup};
use domain::catchup::{ProviderZone, TIME_ZONE};
use domain::certificate::Fingerprint;
use domain::panel::{LiveForm, PanelAddress};
use domain::playlist::rules::Rules;
use domain::portal::PortalDevice;
use domain::proxy::ProxyAddress;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use domain::stream_identity::{IdentityKey, check_order};
use domain::stream_profile::StreamProfile;
use media::{CertificateTrust, spawn_blocking};
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use super::location::{LocationChange, location_of};
use super::view::{M3UAccountEdit, M3UAccountRuleView};
use crate::api::channels::values::no_such;
use crate::api::text::sentence;
use crate::choice::Named;
use crate::record::{set, set_fields};

/// A valid edit.
pub(super) struct Change {
    location: LocationChange,
    /// The device of the default profile, if the account has a portal.
    device: Option<PortalDevice>,
    user_agent: Option<Option<String>>,
    headers: Option<RequestHeaders>,
    rules: Option<Vec<Rule>>,
    release_delay: Option<Duration>,
    crash_cooling: Option<Option<Duration>>,
    proxy: Option<Option<ProxyAddress>>,
    fingerprint: Option<Option<Fingerprint>>,
    authority: Option<Option<String>>,
    further_addresses: Option<Vec<SourceUrl>>,
    nodes: Option<Vec<String>>,
    identity_keys: Option<Vec<IdentityKey>>,
    live_form: Option<Option<LiveForm>>,
    others: M3UAccountEdit,
}

impl Change {
    /// Checks an edit of an account with this list and proxy, and this device in its default profile. Checks the file if it is
    /// another one.
    pub(super) async fn new(
        mut edit: M3UAccountEdit,
        now: &PlaylistLocation,
        known_proxy: Option<&ProxyAddress>,
        known_device: Option<&PortalDevice>,
    ) -> Result<Self, Refusal> {
        let mut errors = FieldErrors::default();
        let (location, device) = location_of(&mut edit, now, known_device, &mut errors);
        if let LocationChange::Is(PlaylistLocation::File(path)) = &location
            && location.differs_from(now)
            && let Err(message) = check_file(path.clone()).await
        {
            errors.add("file_path", message);
        }
        let user_agent = edit.user_agent.take().map(|it| it.filter(|it| !it.is_empty()));
        if let Some(Some(agent)) = &user_agent
            && !RequestHeaders::default().set("User-Agent", agent)
        {
            errors.add("user_agent", "This is not a valid header value.");
        }
        let headers = edit.headers.take().map(|it| headers_of(it, &mut errors));
        let rules: Option<Vec<Rule>> =
            edit.rules.take().map(|it| it.into_iter().map(M3UAccountRuleView::into_rule).collect());
        if let Some(Err(error)) = rules.as_ref().map(|it| Rules::new(it)) {
            errors.add("rules", sentence(error));
        }
        if let Some(Err(message)) =
            edit.cron_expression.as_ref().filter(|it| !it.is_empty()).map(|it| check_cron(it))
        {
            errors.add("cron_expression", message);
        }
        let properties = edit.custom_properties.iter().flatten();
        if let Some(cleanup) = properties.into_iter().find_map(|it| it.get(ORPHAN_CLEANUP))
            && cleanup.as_str().and_then(OrphanCleanup::from_name).is_none()
            && !cleanup.is_null()
        {
            let message = format!("{ORPHAN_CLEANUP} is always, preserve_customized or never.");
            errors.add("custom_properties", message);
        }
        if let Some(zone) = edit.custom_properties.iter().flatten().find_map(|it| it.get(TIME_ZONE))
            && !zone.is_null()
            && zone.as_str().and_then(ProviderZone::named).is_none()
        {
            let message = format!("{TIME_ZONE} is the name of a time zone, such as Europe/Paris.");
            errors.add("custom_properties", message);
        }
        let release_delay = edit.release_delay.and_then(|it| seconds_of("release_delay", it, &mut errors));
        let crash_cooling =
            edit.crash_cooling.map(|it| it.and_then(|it| seconds_of("crash_cooling", it, &mut errors)));
        let proxy = edit.proxy.take().map(|it| it.filter(|it| !it.trim().is_empty()));
        let proxy = proxy.map(|it| it.map(|it| ProxyAddress::parse_edited(&it, known_proxy)).transpose());
        let proxy = match proxy.transpose() {
            Ok(proxy) => proxy,
            Err(error) => {
                errors.add("proxy", sentence(error));
                None
            }
        };
        let fingerprint = edit.certificate_fingerprint.take().map(|it| fingerprint_of(it, &mut errors));
        let authority = edit.certificate_authority.take().map(|it| authority_of(it, &mut errors));
        let further_addresses = edit.further_addresses.take().map(|it| addresses_of(it, &mut errors));
        let identity_keys = edit.identity_keys.take().map(|it| identity_keys_of(it, &mut errors));
        let live_form = edit.live_form.take().map(|it| it.0.setting());
        let is_panel = match &location {
            LocationChange::Is(list) => list.panel().is_some(),
            _ => now.panel().is_some(),
        };
        if live_form.is_some_and(|it| it.is_some()) && !is_panel {
            errors.add("live_form", "Only accounts of the type XC have a form of addresses.");
        }
        let nodes = edit.nodes.take().map(|it| nodes_of(it, &mut errors));
        Ok(errors.or(Change {
            proxy,
            fingerprint,
            authority,
            nodes,
            further_addresses,
            identity_keys,
            live_form,
            location,
            device,
            user_agent,
            headers,
            rules,
            release_delay,
            crash_cooling,
            others: edit,
        })?)
    }

    /// Checks that the records exist to which the account refers.
    pub(super) fn check_references(write: &Write<'_>, account: &Account) -> Result<(), Refusal> {
        let mut errors = FieldErrors::default();
        if let Some(id) = account.stream_profile
            && write.get::<StreamProfile>(id.0)?.is_none()
        {
            errors.add("stream_profile_id", no_such(id));
        }
        Ok(errors.or(())?)
    }

    /// Returns whether it sets the location of the playlist.
    pub(super) fn has_location(&self) -> bool {
        matches!(&self.location, LocationChange::Is(list) if *list != PlaylistLocation::None)
    }

    /// Applies the edit.
    pub(super) fn apply(self, account: &mut Account) {
        let edit = self.others;
        self.location.apply(&mut account.list);
        set_device(account, self.device);
        set(&mut account.headers.user_agent, self.user_agent);
        if let Some(headers) = self.headers {
            account.headers = RequestHeaders { user_agent: account.headers.user_agent.take(), ..headers };
        }
        set(&mut account.rules, self.rules);
        set(&mut account.release_delay, self.release_delay);
        set(&mut account.crash_cooling, self.crash_cooling);
        set(&mut account.proxy, self.proxy);
        set(&mut account.certificates.verify, edit.verify_certificate);
        set(&mut account.certificates.fingerprint, self.fingerprint);
        set(&mut account.certificates.authority, self.authority);
        set(&mut account.further_addresses, self.further_addresses);
        set(&mut account.live_form, self.live_form);
        if account.list.panel().is_none() {
            account.live_form = None;
        }
        set(&mut account.nodes, self.nodes);
        set(&mut account.headers_for_all_hosts, edit.headers_for_all_hosts);
        set(&mut account.allowed_networks, edit.allowed_networks.map(|it| it.0));
        set(&mut account.name, edit.name);
        set(&mut account.server_group, edit.server_group);
        set(&mut account.stream_profile, edit.stream_profile_id);
        // Films and series are many, so a new category is imported when an admin says so.
        if edit.enable_vod == Some(true) && !account.enable_vod {
            account.auto_enable_new_groups_vod = false;
            account.auto_enable_new_groups_series = false;
        }
        set_fields!(account from edit:
            auto_enable_new_groups_live, auto_enable_new_groups_vod, auto_enable_new_groups_series, is_active
        );
        if let Some(max_streams) = edit.max_streams
            && let Some(profile) = account.profiles.iter_mut().find(|it| it.is_default)
        {
            profile.max_streams = max_streams;
        }
        if let Some(exp_date) = edit.exp_date
            && let Some(profile) = account.profiles.iter_mut().find(|it| it.is_default)
        {
            profile.expires_at = exp_date.map(|it| it.0);
        }
        set(&mut account.schedule.interval_hours, edit.refresh_interval);
        set(&mut account.schedule.cron, edit.cron_expression);
        set_fields!(account from edit:
            stale_stream_days, priority, custom_properties, enable_vod, load_all_episodes
        );
        set(&mut account.identity_keys, self.identity_keys);
        set(&mut account.identity, edit.stream_identity.map(|it| it.0));
    }
}

/// Returns a time that a field gives in seconds.
fn seconds_of(field: &'static str, seconds: f64, errors: &mut FieldErrors) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(seconds);
    time.map_err(|_| errors.add(field, "Expected a number, such as 1.5.")).ok()
}

/// Gives the default profile of an account at a portal its device. Profiles of other accounts have none.
fn set_device(account: &mut Account, device: Option<PortalDevice>) {
    if account.list.portal().is_none() {
        account.profiles.iter_mut().for_each(|it| it.device = None);
    } else if let Some(device) = device
        && let Some(profile) = account.profiles.iter_mut().find(|it| it.is_default)
    {
        profile.device = Some(Box::new(device));
    }
}

/// Returns the fingerprint of a certificate; an empty text removes it.
fn fingerprint_of(text: Option<String>, errors: &mut FieldErrors) -> Option<Fingerprint> {
    let text = text.filter(|it| !it.trim().is_empty())?;
    Fingerprint::parse(&text).map_err(|error| errors.add("certificate_fingerprint", sentence(error))).ok()
}

/// Returns certificates of authorities; an empty text removes them.
fn authority_of(text: Option<String>, errors: &mut FieldErrors) -> Option<String> {
    let text = text.filter(|it| !it.trim().is_empty())?;
    match CertificateTrust::authorities_of(&text) {
        Ok(_) => Some(text),
        Err(error) => {
            errors.add("certificate_authority", sentence(error));
            None
        }
    }
}

/// Returns base addresses in the order of the admin. Each is read like the address of a panel; a login in it is left out,
/// because all servers of an account have the same.
fn addresses_of(texts: Vec<String>, errors: &mut FieldErrors) -> Vec<SourceUrl> {
    let mut addresses = Vec::new();
    for text in texts.iter().filter(|it| !it.trim().is_empty()) {
        match PanelAddress::parse(text) {
            Ok(address) if !addresses.contains(&address.server) => addresses.push(address.server),
            Ok(_) => {}
            Err(error) => errors.add("further_addresses", sentence(error)),
        }
    }
    addresses
}

/// Returns the keys by which streams are recognised; empty for the default order.
pub(super) fn identity_keys_of(keys: Vec<Named<IdentityKey>>, errors: &mut FieldErrors) -> Vec<IdentityKey> {
    let keys: Vec<IdentityKey> = keys.into_iter().map(|it| it.0).collect();
    if let Err(error) = check_order(&keys) {
        errors.add("identity_keys", sentence(error));
    }
    if keys == IdentityKey::ALL { Vec::new() } else { keys }
}

/// Returns names of nodes, each once. A node with such a name need not exist yet.
fn nodes_of(names: Vec<String>, errors: &mut FieldErrors) -> Vec<String> {
    let mut nodes = Vec::new();
    for name in names {
        match check_node_name(&name) {
            Ok(()) if nodes.contains(&name) => {}
            Ok(()) => nodes.push(name),
            Err(reason) => errors.add("nodes", format!("The name of a node {reason}.")),
        }
    }
    nodes
}

/// Returns these headers. The user agent has a field of its own.
pub(in crate::api) fn headers_of(named: Map<String, Value>, errors: &mut FieldErrors) -> RequestHeaders {
    let mut headers = RequestHeaders::default();
    for (name, value) in named {
        let shown: String = name.chars().take(100).collect();
        if name.eq_ignore_ascii_case("user-agent") {
            errors.add("headers", "Set the user agent with the field user_agent.");
        } else if !value.as_str().is_some_and(|it| headers.set(&name, it)) {
            let message = match headers.extra.len() < RequestHeaders::EXTRA_MAX {
                true => format!("\"{shown}\" is not a header that can be set, or its value is invalid."),
                false => format!("At most {} headers are allowed.", RequestHeaders::EXTRA_MAX),
            };
            errors.add("headers", message);
        }
    }
    headers
}

/// Checks that the gateway can read a file, or returns a message for the admin.
async fn check_file(path: String) -> Result<(), String> {
    if !Path::new(&path).is_absolute() {
        return Err("Give the absolute path of a file on the gateway's machine.".to_owned());
    }
    // A network file system may be slow, so a thread that may block checks the file.
    let checked = spawn_blocking(move || {
        // Checked before opening, because opening a pipe would wait for a writer.
        if !std::fs::metadata(&path)?.is_file() {
            return Ok(false);
        }
        File::open(&path).map(|_| true)
    });
    match checked.await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("This is not a file.".to_owned()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err("The file does not exist on the gateway's machine.".to_owned())
        }
        Ok(Err(error)) => Err(format!("The gateway cannot read this file: {}.", error.kind())),
        Err(_) => Err("The gateway cannot read this file.".to_owned()),
    }
}
