//! Reads the REST interface of the running service.

use actors::{Fetch, FetchLimits};
use anyhow::{Context, bail, ensure};
use domain::egress::Reach;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use import_from::{LOGO_FILE, SourceTable};
use node::tls::install_tls;
use serde_json::{Map, Value, json};
use services::logo_cache::LOGO_BYTES_MAX;

use super::gathered::Gathered;

/// Maximum length of an answer, in bytes. Its values take several times as much memory.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Records per page, where a list has pages.
const PAGE_SIZE: u32 = 1000;
/// Maximum number of pages of a list.
const PAGES_MAX: u32 = 10_000;

/// How to log in.
pub(super) enum Credentials {
    ApiKey(Secret),
    Password { username: String, password: Secret },
}

/// A list, and whether the import makes sense without it.
struct List {
    table: SourceTable,
    path: &'static str,
    is_required: bool,
}

const fn list(table: SourceTable, path: &'static str, is_required: bool) -> List {
    List { table, path, is_required }
}

/// All lists that are read, with the filters that make them complete.
const LISTS: [List; 13] = [
    list(SourceTable::Groups, "/api/channels/groups/?", true),
    list(SourceTable::UserAgents, "/api/core/useragents/?", false),
    list(SourceTable::StreamProfiles, "/api/core/streamprofiles/?", false),
    list(SourceTable::Logos, "/api/channels/logos/?", false),
    list(SourceTable::EpgSources, "/api/epg/sources/?", false),
    list(SourceTable::EpgData, "/api/epg/epgdata/?", false),
    list(SourceTable::ServerGroups, "/api/m3u/server-groups/?", false),
    list(SourceTable::Accounts, "/api/m3u/accounts/?", true),
    list(SourceTable::Streams, "/api/channels/streams/?", true),
    list(SourceTable::Channels, "/api/channels/channels/?visibility_filter=all&", true),
    list(SourceTable::ChannelProfiles, "/api/channels/profiles/?", false),
    list(SourceTable::Users, "/api/accounts/users/?", true),
    list(SourceTable::Settings, "/api/core/settings/?", false),
];

/// Reads everything that the interface shows to this user.
pub(super) fn read(
    address: &SourceUrl,
    credentials: &Credentials,
    into: &mut Gathered,
) -> anyhow::Result<()> {
    install_tls();
    let limits = FetchLimits { bytes_max: ANSWER_BYTES_MAX, ..FetchLimits::default() };
    let fetch = Fetch::new(limits).context("failed to set up the HTTP client")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::log_in(fetch, address, credentials).await?;
        for list in &LISTS {
            client.read(list, into).await?;
        }
        note_gaps(into);
        anyhow::Ok(())
    })
}

/// Notes what the interface does not show.
fn note_gaps(into: &mut Gathered) {
    for table in [
        SourceTable::AccountProfiles,
        SourceTable::AccountFilters,
        SourceTable::AccountGroups,
        SourceTable::ChannelStreams,
        SourceTable::ChannelOverrides,
        SourceTable::Memberships,
        SourceTable::UserProfiles,
        SourceTable::Schedules,
        SourceTable::Crontabs,
        SourceTable::VodCategories,
        SourceTable::AccountVodCategories,
        SourceTable::Movies,
        SourceTable::Series,
        SourceTable::Episodes,
        SourceTable::MovieOffers,
        SourceTable::SeriesOffers,
        SourceTable::EpisodeOffers,
    ] {
        into.found(table);
    }
    into.report.note(
        "ids of films and series",
        "the interface does not list which account offers which of them; to keep the ids, import an export of the database",
    );
    let accounts = into.household.rows(SourceTable::Accounts);
    let n_inactive = accounts.iter().filter(|it| it.flag("is_active") == Some(false)).count();
    if n_inactive > 0 {
        into.report.note(
            format!("streams of {n_inactive} inactive accounts"),
            "the interface does not list them; activate the accounts first, or import an export of the database",
        );
    }
}

struct Client {
    fetch: Fetch,
    /// Without a slash at the end.
    base: String,
    headers: RequestHeaders,
}

impl Client {
    async fn log_in(fetch: Fetch, address: &SourceUrl, credentials: &Credentials) -> anyhow::Result<Self> {
        let base = address.expose().trim_end_matches('/').to_owned();
        let mut client = Self { fetch, base, headers: RequestHeaders::default() };
        let is_valid = match credentials {
            Credentials::ApiKey(key) => client.headers.set("X-API-Key", key.expose()),
            Credentials::Password { username, password } => {
                let body = json!({ "username": username, "password": password.expose() }).to_string();
                let url = format!("{}/api/accounts/token/", client.base);
                let reply = client.fetch.post_json(&url, body, &client.headers, Reach::default()).await;
                let reply =
                    reply.map_err(|error| anyhow::anyhow!("failed to log in: {}", error.with_causes()))?;
                let token = Self::value(reply).await?;
                let token =
                    token.get("access").and_then(Value::as_str).context("the login returned no token")?;
                client.headers.set("Authorization", &format!("Bearer {token}"))
            }
        };
        ensure!(is_valid, "the API key or token contains characters that cannot be sent");
        Ok(client)
    }

    async fn value(body: actors::FetchBody) -> anyhow::Result<Value> {
        let bytes = body.whole().await.map_err(|error| anyhow::anyhow!("{}", error.with_causes()))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            anyhow::anyhow!("the answer is not JSON (line {}); is the address right?", error.line())
        })
    }

    /// Reads a list, with pages or without.
    async fn read(&self, list: &List, into: &mut Gathered) -> anyhow::Result<()> {
        for page in 1..=PAGES_MAX {
            let path = format!("{}page={page}&page_size={PAGE_SIZE}", list.path);
            let url = format!("{}{path}", self.base);
            let answer = match self.fetch.get(&url, &self.headers, Reach::default()).await {
                Ok(body) => Self::value(body).await,
                Err(error) => Err(anyhow::anyhow!("{}", error.with_causes())),
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) if list.is_required || page > 1 => {
                    return Err(error.context(format!(
                        "failed to read the {}; the user must be an admin (level 10)",
                        list.table.label()
                    )));
                }
                Err(error) => {
                    into.report.note(list.table.label(), &format!("not read: {error}"));
                    into.found(list.table);
                    return Ok(());
                }
            };
            into.found(list.table);
            let (records, has_more) = match &answer {
                Value::Array(records) => (records, false),
                Value::Object(envelope) => {
                    let records = envelope.get("results").and_then(Value::as_array);
                    let records = records.with_context(|| {
                        format!("the list of {} has another form than expected", list.table.label())
                    })?;
                    (records, envelope.get("next").is_some_and(|it| !it.is_null()) && !records.is_empty())
                }
                _ => bail!("the list of {} has another form than expected", list.table.label()),
            };
            for record in records.iter().filter_map(Value::as_object) {
                match list.table {
                    SourceTable::Logos => {
                        let record = self.with_file(record.clone(), into).await?;
                        into.add_object(list.table, &record)?;
                    }
                    SourceTable::Users => {
                        self.fetch_picture(record, into).await?;
                        into.add_object(list.table, record)?;
                    }
                    table => into.add_object(table, record)?,
                }
            }
            if !has_more {
                return Ok(());
            }
        }
        bail!("the list of {} has more than {PAGES_MAX} pages", list.table.label())
    }

    /// Fetches the uploaded picture of a user. Without a picture, the record stays as it is, and is reported later.
    async fn fetch_picture(&self, record: &Map<String, Value>, into: &mut Gathered) -> anyhow::Result<()> {
        let id = record.get("id").and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
        let avatar = record.get("avatar_config").and_then(Value::as_object);
        let url = avatar.and_then(|it| it.get("url")?.as_str());
        // Both forms lead to the same service, which alone gets the credentials.
        let path = url.map(|it| it.strip_prefix(&self.base).unwrap_or(it)).filter(|it| it.starts_with('/'));
        let (Some(id), Some(path)) = (id, path) else { return Ok(()) };
        let url = format!("{}{path}", self.base);
        let Ok(body) = self.fetch.get(&url, &self.headers, Reach::default()).await else { return Ok(()) };
        let Ok(bytes) = body.whole().await else { return Ok(()) };
        into.add_picture(id, &bytes)
    }

    /// Fetches the file of an uploaded logo, and notes its name in the record. Without an image, the record stays as it
    /// is, and is reported later.
    async fn with_file(
        &self,
        mut record: Map<String, Value>,
        into: &mut Gathered,
    ) -> anyhow::Result<Map<String, Value>> {
        // Not one that the record brings itself.
        record.remove(LOGO_FILE);
        let is_file = record.get("url").and_then(Value::as_str).is_some_and(|it| it.starts_with('/'));
        let id = record.get("id").and_then(Value::as_u64);
        let Some(id) = id.filter(|_| is_file) else { return Ok(record) };
        let url = format!("{}/api/channels/logos/{id}/cache/", self.base);
        let Ok(body) = self.fetch.get(&url, &self.headers, Reach::default()).await else { return Ok(record) };
        let Ok(bytes) = body.whole().await else { return Ok(record) };
        let is_small = bytes.len() as u64 <= LOGO_BYTES_MAX;
        if let Some(name) = is_small.then(|| into.add_logo_file(&bytes)).transpose()?.flatten() {
            record.insert(LOGO_FILE.to_owned(), name.into());
        }
        Ok(record)
    }
}
