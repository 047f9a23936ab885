//! `headwater play`: a gateway for some playlists, on a temporary store.
//!
//! Every playlist becomes an account. [`CatalogueBuilder`] makes channels of the entries of all playlists. Unusable entries
//! are reported with their line, and the others are played.

use std::fmt;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::{Fetch, FetchError, PlaylistFindings, PlaylistReadError, PlaylistSource, read_playlist};
use config::{Config, ListSource};
use domain::channel::Channel;
use domain::egress::Reach;
use domain::playlist::catalogue::{Catalogue, CatalogueBuilder};
use domain::playlist::m3u::PlaylistLimits;
use domain::stream::RequestHeaders;
use media::spawn_blocking;
use node::tls::install_tls;
use parking_lot::Mutex;
use services::addresses::stream_address;
use services::http_client::fetch;
use storage::Store;
use tokio::time::{sleep, timeout};

use crate::gateway::{Gateway, Runtimes, StartError};
use crate::terminal::{printable, say};

/// Pauses before a playlist that failed is fetched again.
const RETRY_PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// Time between two lines about a playlist that is still being read.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);
/// Maximum number of channels that are listed at the start.
const CHANNELS_NAMED_MAX: usize = 10;

/// Reason why `play` does not start.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error(
        "no playlist named: try `headwater play LIST.m3u`, or `headwater demo` to see it work without one"
    )]
    NoLists,
    #[error("no channel found in {n_lists} playlist(s): nothing to serve")]
    NoChannels { n_lists: usize },
    #[error("failed to prepare for fetching")]
    Client(#[source] FetchError),
    #[error(transparent)]
    Store(#[from] storage::Error),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Reason why a text that looks like an address without a scheme is not read.
pub(crate) const NO_SCHEME: &str =
    "there is no such file; to fetch it from a server, write http:// or https:// before it";

/// Reason why one playlist was not read to its end. The others are played nevertheless.
#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error(transparent)]
    Read(#[from] PlaylistReadError),
    #[error("it did not arrive within {} s", .0.as_secs())]
    Slow(Duration),
    #[error("{NO_SCHEME}")]
    NoScheme,
}

/// The result of reading one playlist.
pub(crate) struct Report {
    list: ListSource,
    read: Result<(), ListError>,
    findings: PlaylistFindings,
}

impl Report {
    /// Returns whether the playlist was read to its end.
    pub(crate) fn is_complete(&self) -> bool {
        self.read.is_ok()
    }
}

/// Reads the playlists of the configuration, prints a report, and starts a gateway for them.
pub async fn run(config: Config, runtimes: Runtimes) -> Result<Gateway, PlayError> {
    let (catalogue, reports) = read_lists(&config).await?;
    for report in &reports {
        say(&report.to_string());
    }
    if catalogue.channels.is_empty() {
        return Err(PlayError::NoChannels { n_lists: reports.len() });
    }
    let channels = channels_text(&catalogue);
    let example = catalogue.channels[0].clone();
    let gateway = Gateway::start(config, temporary(catalogue).await?, runtimes).await?;
    say(&format!("\n{channels}\n{}", addresses_text(&gateway, Some(&example))));
    Ok(gateway)
}

/// Creates a store with this catalogue. It is deleted with its last handle.
pub async fn temporary(catalogue: Catalogue) -> Result<Store, storage::Error> {
    let made = spawn_blocking(move || {
        let store = Store::temporary(storage::records::schema())?;
        storage::seed(&store)?;
        storage::store_catalogue(&store, catalogue)?;
        Ok(store)
    });
    made.await.unwrap_or(Err(storage::Error::Panicked))
}

/// Reads all playlists, one after the other.
pub(crate) async fn read_lists(config: &Config) -> Result<(Catalogue, Vec<Report>), PlayError> {
    read_with_pauses(config, &RETRY_PAUSES).await
}

async fn read_with_pauses(
    config: &Config,
    pauses: &[Duration],
) -> Result<(Catalogue, Vec<Report>), PlayError> {
    let lists = &config.play.lists;
    if lists.is_empty() {
        return Err(PlayError::NoLists);
    }
    install_tls();
    let fetch = fetch(config).map_err(PlayError::Client)?;
    let catalogue = Arc::new(Mutex::new(CatalogueBuilder::new()));
    let mut reports = Vec::with_capacity(lists.len());
    for list in lists {
        reports.push(read_list(config, list, &fetch, &catalogue, pauses).await);
    }
    // A reader that was stopped by the time-out may still hold a reference.
    let catalogue = std::mem::take(&mut *catalogue.lock());
    Ok((catalogue.build(), reports))
}

/// Reads one playlist into the catalogue, as an account of its own. Tries again while a failure may pass and no entry has
/// arrived.
async fn read_list(
    config: &Config,
    list: &ListSource,
    fetch: &Fetch,
    catalogue: &Arc<Mutex<CatalogueBuilder>>,
    pauses: &[Duration],
) -> Report {
    let headers = RequestHeaders::default();
    let account = catalogue.lock().account(&account_name(list), config.play.max_streams, headers.clone());
    let mut pauses = pauses.iter().copied();
    loop {
        let source = match list {
            ListSource::File(path) => PlaylistSource::File(path.clone()),
            ListSource::Url(url) => PlaylistSource::Url(url.clone(), headers.clone(), Reach::default()),
            ListSource::NoScheme(_) => {
                let (read, findings) = (Err(ListError::NoScheme), PlaylistFindings::default());
                return Report { list: list.clone(), read, findings };
            }
        };
        let findings = Arc::new(Mutex::new(PlaylistFindings::default()));
        let (entries, progress) = (Arc::clone(catalogue), Arc::clone(&findings));
        let reading = read_playlist(
            fetch,
            source,
            PlaylistLimits::default(),
            move |entry| entries.lock().entry(account, entry),
            move |found| progress.lock().clone_from(found),
        );
        let limit = config.limits.playlist_timeout;
        let read = match timeout(limit, with_progress(reading, list, &findings)).await {
            Ok(read) => read.map_err(ListError::from),
            Err(_) => Err(ListError::Slow(limit)),
        };
        let findings = findings.lock().clone();
        if let Err(ListError::Read(error)) = &read
            && error.is_temporary()
            && findings.n_entries == 0
            && let Some(pause) = pauses.next()
        {
            say(&format!("{list}: failed to read: {error}; the next try is in {} s", pause.as_secs()));
            sleep(pause).await;
            continue;
        }
        return Report { list: list.clone(), read, findings };
    }
}

/// Prints how far a slow playlist has been read.
async fn with_progress<T>(
    reading: impl Future<Output = T>,
    list: &ListSource,
    findings: &Mutex<PlaylistFindings>,
) -> T {
    let mut reading = std::pin::pin!(reading);
    loop {
        match timeout(PROGRESS_PERIOD, &mut reading).await {
            Ok(read) => return read,
            Err(_) => {
                let n_entries = findings.lock().n_entries as usize;
                say(&format!("{list}: still reading, {} so far", counted(n_entries, "entry")));
            }
        }
    }
}

/// Returns the name of the account of a playlist, for logs and errors.
pub(crate) fn account_name(list: &ListSource) -> String {
    match list {
        ListSource::File(path) => path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        ListSource::Url(url) => url.host().unwrap_or("provider").to_owned(),
        ListSource::NoScheme(_) => list.to_string(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlaylistFindings { n_entries, problems, n_problems, has_header, .. } = &self.findings;
        write!(f, "{}: {}", self.list, counted(*n_entries as usize, "entry"))?;
        match &self.read {
            Ok(()) if !has_header && *n_entries == 0 => write!(f, "; is it a playlist?")?,
            Ok(()) => {}
            Err(error) => write!(f, "; failed to read: {error}")?,
        }
        for problem in problems {
            write!(f, "\n  line {}: {}", problem.line, printable(&problem.text))?;
        }
        match n_problems.saturating_sub(problems.len() as u64) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// Returns the number of channels and a list of the first ones.
fn channels_text(catalogue: &Catalogue) -> String {
    let n_channels = catalogue.channels.len();
    let mut text =
        format!("{} from {}\n", counted(n_channels, "channel"), counted(catalogue.streams.len(), "stream"));
    for channel in catalogue.channels.iter().take(CHANNELS_NAMED_MAX) {
        let number = channel.number.map(|it| it.to_string()).unwrap_or_default();
        let streams = counted(channel.streams.len(), "stream");
        writeln!(text, "  {number:>6}  {} ({streams})", printable(&channel.name))
            .expect("a String takes all");
    }
    if let more @ 1.. = n_channels.saturating_sub(CHANNELS_NAMED_MAX) {
        writeln!(text, "  and {more} more").expect("a String takes all");
    }
    if !catalogue.left_out.is_only_channels() {
        writeln!(text, "  left out: {}", catalogue.left_out).expect("a String takes all");
    }
    let mut unplayable = std::collections::BTreeMap::<String, usize>::new();
    let has_ffmpeg = media::find_program("ffmpeg").is_some();
    for reason in catalogue.streams.iter().filter_map(|it| it.kind().reader(has_ffmpeg).err()) {
        *unplayable.entry(reason.to_string()).or_default() += 1;
    }
    for (reason, count) in unplayable {
        writeln!(text, "  left out {}: {reason}", counted(count, "stream")).expect("a String takes all");
    }
    text
}

/// Returns the start of the addresses for players: the public URL, or the address on this machine.
pub(crate) fn player_origin(gateway: &Gateway) -> String {
    let local = || format!("http://{}", local_authority(gateway.player_addr()));
    gateway.public_url().unwrap_or_else(local)
}

/// Returns the addresses of the running gateway.
pub(crate) fn addresses_text(gateway: &Gateway, example: Option<&Channel>) -> String {
    let player = player_origin(gateway);
    let api = local_authority(gateway.api_addr());
    let mut text = format!("Playlist for players  {player}/playlist.m3u\n");
    if let Some(channel) = example {
        text += &format!("One channel           {}\n", stream_address(&player, channel));
    }
    text += &format!("Health and metrics    http://{api}/healthz  http://{api}/metrics\n");
    if gateway.player_addr().ip().is_unspecified() {
        text += "From other machines, use the address of this machine in place of localhost.\n";
    }
    text
}

/// Returns the host and port by which this machine reaches one of its own ports.
pub(crate) fn local_authority(address: SocketAddr) -> String {
    let ip = address.ip().to_canonical();
    if ip.is_unspecified() || ip.is_loopback() {
        return if ip.is_unspecified() {
            format!("localhost:{}", address.port())
        } else {
            address.to_string()
        };
    }
    SocketAddr::new(ip, address.port()).to_string()
}

/// `1 stream`, `2 streams`, `3 entries`.
fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use actors::PROBLEMS_REPORTED_MAX;
    use domain::source_url::SourceUrl;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::JoinHandle;

    use super::*;

    async fn read(lists: &[&str], max_streams: u32) -> (Catalogue, Vec<Report>) {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        for (number, text) in lists.iter().enumerate() {
            let path = directory.path().join(format!("list{number}.m3u"));
            std::fs::write(&path, text).unwrap();
            config.play.lists.push(ListSource::File(path));
        }
        config.play.max_streams = max_streams;
        read_lists(&config).await.unwrap()
    }

    #[tokio::test]
    async fn entries_with_one_id_become_one_channel_over_all_lists_and_each_list_is_an_account() {
        let (catalogue, reports) = read(
            &[
                "#EXTM3U\n#EXTINF:-1 tvg-id=\"one\",One\nhttp://a.example/1\n#EXTINF:-1,Two\nhttp://a.example/2\n",
                "#EXTM3U\n#EXTINF:-1 tvg-id=\"one\",Uno\nhttp://b.example/1\n",
            ],
            2,
        )
        .await;
        let streams: Vec<_> =
            catalogue.channels.iter().map(|it| (it.name.as_str(), it.streams.len())).collect();
        assert_eq!(streams, [("One", 2), ("Two", 1)]);
        assert_eq!(catalogue.accounts.len(), 2);
        assert!(catalogue.accounts.iter().all(|it| it.profiles[0].max_streams == 2));
        assert_eq!(reports.iter().map(|it| it.findings.n_entries).collect::<Vec<_>>(), [2, 1]);
    }

    #[tokio::test]
    async fn unusable_entries_are_reported_with_their_line_and_the_others_are_kept() {
        let list = "#EXTM3U\n#EXTINF:-1,Lost\n#EXTINF:-1,Kept\nhttp://a.example/1\n";
        let (catalogue, reports) = read(&[list], 0).await;
        assert_eq!(catalogue.channels.len(), 1);
        let text = reports[0].to_string();
        assert!(text.contains("1 entry\n  line 2: "), "{text}");
    }

    #[tokio::test]
    async fn only_the_first_twenty_problems_are_listed_and_the_others_are_counted() {
        let list = format!("#EXTM3U\n{}", "#EXTINF:-1,Lost\n".repeat(25));
        let (_, reports) = read(&[&list], 0).await;
        let text = reports[0].to_string();
        assert_eq!(text.matches("\n  line ").count(), PROBLEMS_REPORTED_MAX);
        assert!(text.ends_with("and 5 more"), "{text}");
    }

    /// Answers one request after the other with these status lines and bodies. Returns the configuration to read them.
    async fn served(answers: Vec<(&'static str, &'static str)>) -> (Config, JoinHandle<()>) {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            for (status, body) in answers {
                let (mut socket, _) = server.accept().await.unwrap();
                assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let mut config = Config::default();
        config.play.lists = vec![ListSource::Url(SourceUrl::new(format!("http://{address}/list.m3u")))];
        (config, serving)
    }

    #[tokio::test]
    async fn a_list_from_the_network_may_not_name_files_of_this_machine() {
        let list = "#EXTM3U\n#EXTINF:-1,Ours\nfile:///etc/passwd\n#EXTINF:-1,Kept\nhttp://a.example/1\n";
        let (config, _) = served(vec![("200 OK", list)]).await;
        let (catalogue, reports) = read_lists(&config).await.unwrap();
        assert_eq!(catalogue.channels.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["Kept"]);
        assert!(reports[0].to_string().contains("line 2: a list from the network"), "{}", reports[0]);
    }

    #[tokio::test]
    async fn an_unreadable_playlist_does_not_prevent_the_others_from_playing() {
        let directory = tempfile::tempdir().unwrap();
        let good = directory.path().join("good.m3u");
        std::fs::write(&good, "#EXTM3U\n#EXTINF:-1,One\nhttp://a.example/1\n").unwrap();
        let mut config = Config::default();
        config.play.lists =
            vec![ListSource::File(directory.path().join("missing.m3u")), ListSource::File(good)];
        let (catalogue, reports) = read_lists(&config).await.unwrap();
        assert_eq!(catalogue.channels.len(), 1);
        assert!(reports[0].to_string().contains("failed to read: "), "{}", reports[0]);
    }

    #[tokio::test]
    async fn a_list_that_is_not_there_yet_is_fetched_again() {
        let list = "#EXTM3U\n#EXTINF:-1,One\nhttp://a.example/1\n";
        let (config, served) = served(vec![("503 Service Unavailable", ""), ("200 OK", list)]).await;
        let (catalogue, reports) = read_with_pauses(&config, &[Duration::ZERO]).await.unwrap();
        assert_eq!(catalogue.channels.len(), 1);
        assert!(reports[0].is_complete());
        served.await.unwrap();
    }

    #[tokio::test]
    async fn an_address_without_a_scheme_gets_advice_and_its_credentials_are_not_printed() {
        let mut config = Config::default();
        config.play.lists = vec![ListSource::from("tv.example:8080/get.php?username=u&password=secret")];
        let (_, reports) = read_lists(&config).await.unwrap();
        let text = reports[0].to_string();
        assert!(text.starts_with("tv.example:8080/…: ") && !text.contains("secret"), "{text}");
        assert!(text.ends_with("; to fetch it from a server, write http:// or https:// before it"), "{text}");
        for file in ["lists/tv.m3u", "tv.m3u", "./tv.example/list.m3u", "/srv/tv.example/list.m3u"] {
            assert_eq!(ListSource::from(file), ListSource::File(file.into()), "{file}");
        }
    }

    #[tokio::test]
    async fn a_gzip_compressed_playlist_is_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list.m3u.gz");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"#EXTM3U\n#EXTINF:-1,One\nhttp://a.example/1\n").unwrap();
        std::fs::write(&path, encoder.finish().unwrap()).unwrap();
        let mut config = Config::default();
        config.play.lists = vec![ListSource::File(path)];
        let (catalogue, _) = read_lists(&config).await.unwrap();
        assert_eq!(catalogue.channels[0].name, "One");
    }

    #[tokio::test]
    async fn a_too_long_playlist_is_not_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.m3u");
        std::fs::write(&path, "#EXTM3U\n".repeat(1000)).unwrap();
        let mut config = Config::default();
        config.limits.playlist_bytes_max = 100;
        config.play.lists = vec![ListSource::File(path)];
        let (_, reports) = read_lists(&config).await.unwrap();
        assert!(reports[0].to_string().contains("it is longer than 100 bytes"), "{}", reports[0]);
    }

    #[tokio::test]
    async fn without_channels_the_gateway_does_not_start() {
        let runtimes = Runtimes::current();
        assert!(matches!(run(Config::default(), runtimes.clone()).await, Err(PlayError::NoLists)));
        let mut config = Config::default();
        config.play.lists = vec![ListSource::from("/nonexistent/list.m3u")];
        assert!(matches!(run(config, runtimes).await, Err(PlayError::NoChannels { n_lists: 1 })));
    }

    #[test]
    fn addresses_are_printed_as_this_machine_can_use_them() {
        let said = |address: &str| local_authority(address.parse().unwrap());
        assert_eq!(said("[::]:9191"), "localhost:9191");
        assert_eq!(said("0.0.0.0:9191"), "localhost:9191");
        assert_eq!(said("192.168.1.5:9191"), "192.168.1.5:9191");
        assert_eq!(said("[::1]:9191"), "[::1]:9191");
    }
}
