//! `headwater play`: a gateway for some playlists, on a store that is gone with it.
//!
//! Every list is an account. Entries of all lists become channels by the rule of [`CatalogueBuilder`]. What a list
//! lost on the way is told with its line, and the rest is taken.

use std::fmt;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use actors::{Fetch, FetchError};
use domain::channel::Channel;
use domain::playlist::catalogue::{Catalogue, CatalogueBuilder};
use domain::playlist::m3u::{self, PlaylistItem, PlaylistParser, PlaylistSummary};
use domain::stream::{RequestHeaders, SourceKind};
use storage::Store;
use tokio::io::AsyncReadExt;

use crate::config::{Config, ListSource};
use crate::gateway::{Gateway, Runtimes, StartError, fetch};

/// Problems of one list that are told one by one.
const PROBLEMS_TOLD_MAX: usize = 20;
/// Channels that are named at the start.
const CHANNELS_NAMED_MAX: usize = 10;

/// Why nothing is played.
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

/// Why one list could not be read to its end. The others are played nevertheless.
#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("{}", .0.with_causes())]
    Fetch(#[from] FetchError),
    #[error("it is longer than {bytes_max} bytes")]
    TooLong { bytes_max: u64 },
    #[error("it did not arrive within {} s", .0.as_secs())]
    Slow(Duration),
}

/// What came of one list.
struct Report {
    list: ListSource,
    read: Result<PlaylistSummary, ListError>,
    /// The first problems; their number is in the summary.
    problems: Vec<m3u::PlaylistProblem>,
    n_problems: usize,
    n_entries: usize,
}

/// Reads the playlists of the configuration, says what was found, and starts a gateway for it.
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

/// A store with this catalogue that is gone with its last handle.
pub async fn temporary(catalogue: Catalogue) -> Result<Store, storage::Error> {
    let made = tokio::task::spawn_blocking(move || {
        let store = Store::temporary(storage::records::schema())?;
        storage::seed(&store)?;
        storage::store_catalogue(&store, catalogue)?;
        Ok(store)
    });
    made.await.unwrap_or(Err(storage::Error::Panicked))
}

/// Reads all lists, one after the other.
async fn read_lists(config: &Config) -> Result<(Catalogue, Vec<Report>), PlayError> {
    let lists = &config.play.lists;
    if lists.is_empty() {
        return Err(PlayError::NoLists);
    }
    crate::install_tls();
    let fetch = fetch(config).map_err(PlayError::Client)?;
    let mut catalogue = CatalogueBuilder::new();
    let mut reports = Vec::with_capacity(lists.len());
    for list in lists {
        let mut reading = Reading::new(config, list, &mut catalogue);
        let took = tokio::time::timeout(config.limits.playlist_timeout, reading.read(config, &fetch)).await;
        let read = took.unwrap_or(Err(ListError::Slow(config.limits.playlist_timeout)));
        reports.push(reading.report(read));
    }
    Ok((catalogue.build(), reports))
}

/// One list on its way into the catalogue.
struct Reading<'a> {
    parser: PlaylistParser,
    taker: Taker<'a>,
}

/// Takes what the parser finds.
struct Taker<'a> {
    catalogue: &'a mut CatalogueBuilder,
    account: domain::ids::AccountId,
    list: ListSource,
    problems: Vec<m3u::PlaylistProblem>,
    n_problems: usize,
    n_entries: usize,
}

impl<'a> Reading<'a> {
    fn new(config: &Config, list: &ListSource, catalogue: &'a mut CatalogueBuilder) -> Self {
        let account =
            catalogue.account(&account_name(list), config.play.max_streams, RequestHeaders::default());
        let list = list.clone();
        let taker = Taker { catalogue, account, list, problems: Vec::new(), n_problems: 0, n_entries: 0 };
        Reading { parser: PlaylistParser::new(m3u::PlaylistLimits::default()), taker }
    }

    async fn read(&mut self, config: &Config, fetch: &Fetch) -> Result<PlaylistSummary, ListError> {
        match self.taker.list.clone() {
            ListSource::File(path) => {
                let bytes_max = config.limits.playlist_bytes_max;
                let mut file = tokio::fs::File::open(path).await?.take(bytes_max + 1);
                let mut piece = vec![0; 256 << 10];
                let mut n_read = 0_u64;
                loop {
                    let n_bytes = file.read(&mut piece).await?;
                    if n_bytes == 0 {
                        break;
                    }
                    n_read += n_bytes as u64;
                    if n_read > bytes_max {
                        return Err(ListError::TooLong { bytes_max });
                    }
                    self.push(&piece[..n_bytes]);
                }
            }
            ListSource::Url(url) => {
                let mut body = fetch.get(url.expose(), &RequestHeaders::default()).await?;
                while let Some(piece) = body.next().await? {
                    self.push(piece.as_ref());
                }
            }
        }
        let parser = std::mem::replace(&mut self.parser, PlaylistParser::new(m3u::PlaylistLimits::default()));
        Ok(parser.finish(&mut |item| self.taker.take(item)))
    }

    fn push(&mut self, bytes: &[u8]) {
        self.parser.push(bytes, &mut |item| self.taker.take(item));
    }

    fn report(self, read: Result<PlaylistSummary, ListError>) -> Report {
        let Taker { list, problems, n_problems, n_entries, .. } = self.taker;
        Report { list, read, problems, n_problems, n_entries }
    }
}

impl Taker<'_> {
    fn take(&mut self, item: PlaylistItem) {
        match item {
            PlaylistItem::Header(_) => {}
            PlaylistItem::Entry(entry) if self.is_foreign_file(&entry) => self.tell(m3u::PlaylistProblem {
                line: entry.line,
                kind: m3u::PlaylistProblemKind::LocalFile,
                text: "a list from the network may not name files of this machine".to_owned(),
            }),
            PlaylistItem::Entry(entry) => {
                self.n_entries += 1;
                self.catalogue.entry(self.account, entry);
            }
            PlaylistItem::Problem(problem) => self.tell(problem),
        }
    }

    fn is_foreign_file(&self, entry: &m3u::PlaylistEntry) -> bool {
        matches!(self.list, ListSource::Url(_)) && SourceKind::of(&entry.url) == SourceKind::File
    }

    fn tell(&mut self, problem: m3u::PlaylistProblem) {
        self.n_problems += 1;
        if self.problems.len() < PROBLEMS_TOLD_MAX {
            self.problems.push(problem);
        }
    }
}

/// How an account is called in logs and refusals.
pub(crate) fn account_name(list: &ListSource) -> String {
    match list {
        ListSource::File(path) => path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        ListSource::Url(url) => url.host().unwrap_or("provider").to_owned(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.list, counted(self.n_entries, "entry"))?;
        match &self.read {
            Ok(summary) if !summary.has_header && self.n_entries == 0 => write!(f, "; is it a playlist?")?,
            Ok(_) => {}
            Err(error) => write!(f, "; failed to read: {error}")?,
        }
        for problem in &self.problems {
            write!(f, "\n  line {}: {}", problem.line, printable(&problem.text))?;
        }
        match self.n_problems.saturating_sub(self.problems.len()) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// How many channels there are, and the first of them.
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

/// Where to go from here.
pub(crate) fn addresses_text(gateway: &Gateway, example: Option<&Channel>) -> String {
    let player = local_authority(gateway.player_addr());
    let api = local_authority(gateway.api_addr());
    let mut text = format!("Playlist for players  http://{player}/playlist.m3u\n");
    if let Some(channel) = example {
        text += &format!("One channel           {}\n", crate::player::stream_url(&player, channel));
    }
    text += &format!("Health and metrics    http://{api}/healthz  http://{api}/metrics\n");
    if gateway.player_addr().ip().is_unspecified() {
        text += "Other machines of your network use this machine's address in place of localhost.\n";
    }
    text
}

/// How this machine reaches a port of its own.
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

/// Names come from strangers, and a terminal obeys control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

/// Says something to whoever started us. That nobody listens is no error.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end_matches('\n'));
}

/// Says why we end.
pub fn say_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use domain::source_url::SourceUrl;

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
        assert_eq!(reports.iter().map(|it| it.n_entries).collect::<Vec<_>>(), [2, 1]);
    }

    #[tokio::test]
    async fn what_a_list_lost_is_told_with_its_line_and_the_rest_is_taken() {
        let list = "#EXTM3U\n#EXTINF:-1,Lost\n#EXTINF:-1,Kept\nhttp://a.example/1\n";
        let (catalogue, reports) = read(&[list], 0).await;
        assert_eq!(catalogue.channels.len(), 1);
        let text = reports[0].to_string();
        assert!(text.contains("1 entry\n  line 2: "), "{text}");
    }

    #[tokio::test]
    async fn of_many_problems_the_first_twenty_are_told_and_the_others_counted() {
        let list = format!("#EXTM3U\n{}", "#EXTINF:-1,Lost\n".repeat(25));
        let (_, reports) = read(&[&list], 0).await;
        let text = reports[0].to_string();
        assert_eq!(text.matches("\n  line ").count(), PROBLEMS_TOLD_MAX);
        assert!(text.ends_with("and 5 more"), "{text}");
    }

    #[tokio::test]
    async fn a_list_from_the_network_may_not_name_files_of_this_machine() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let list = "#EXTM3U\n#EXTINF:-1,Ours\nfile:///etc/passwd\n#EXTINF:-1,Kept\nhttp://a.example/1\n";
            let (mut socket, _) = server.accept().await.unwrap();
            let n_asked = socket.read(&mut [0; 4096]).await.unwrap();
            assert!(n_asked > 0);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", list.len());
            let answer = format!("{head}{list}");
            tokio::io::AsyncWriteExt::write_all(&mut socket, answer.as_bytes()).await.unwrap();
        });
        let mut config = Config::default();
        config.play.lists = vec![ListSource::Url(SourceUrl::new(format!("http://{address}/list.m3u")))];
        let (catalogue, reports) = read_lists(&config).await.unwrap();
        assert_eq!(catalogue.channels.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["Kept"]);
        assert!(reports[0].to_string().contains("line 2: a list from the network"), "{}", reports[0]);
    }

    #[tokio::test]
    async fn a_list_that_cannot_be_read_does_not_keep_the_others_from_playing() {
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
    async fn a_list_that_is_too_long_is_not_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.m3u");
        std::fs::write(&path, "#EXTM3U\n".repeat(1000)).unwrap();
        let mut config = Config::default();
        config.limits.playlist_bytes_max = 100;
        config.play.lists = vec![ListSource::File(path)];
        let (_, reports) = read_lists(&config).await.unwrap();
        assert!(matches!(reports[0].read, Err(ListError::TooLong { bytes_max: 100 })));
    }

    #[tokio::test]
    async fn without_a_channel_nothing_is_started() {
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
