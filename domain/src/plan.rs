//! What a live channel needs to know to play: its candidates, in the order in which they are tried.
//!
//! A candidate is a stream together with an account profile that could play it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::account::{Account, AccountProfile};
use crate::channel::{Channel, ChannelNumber};
use crate::command::{Argv, CommandTemplate, CommandTemplateError, CommandValues};
use crate::ids::{AccountId, ChannelId, ProfileId, StreamId, StreamProfileId};
use crate::pattern::Pattern;
use crate::playout::PlayoutCandidate;
use crate::source_url::SourceUrl;
use crate::stream::{RequestHeaders, SourceKind, Stream, StreamReader, Unplayable};
use crate::stream_profile::{Delivery, StreamProfile};

/// Everything a live channel knows of the records. Taken when it starts and when they change.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub uuid: Uuid,
    pub name: String,
    pub number: Option<ChannelNumber>,
    /// First tried first. Empty if nothing of the channel can be played.
    pub candidates: Vec<Candidate>,
    /// Streams that were left out because of what they are, with the reason. Each once.
    pub unplayable: Vec<(StreamId, Unplayable)>,
}

/// One way to play a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub stream: StreamId,
    pub stream_name: String,
    /// The stream's address as the account profile rewrites it.
    pub url: SourceUrl,
    pub kind: SourceKind,
    /// The stream's headers over those of its account.
    pub headers: RequestHeaders,
    /// The profile in force for this stream on this channel.
    pub profile: Delivery,
    /// The program that reads it in the gateway's place, where one does.
    pub command: Option<Argv>,
    pub pool: SlotPool,
}

/// What holds for all plans of a gateway, whatever the records say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanContext {
    /// The machine has ffmpeg.
    pub has_ffmpeg: bool,
    /// What providers are told where neither stream, account nor stream profile says it; `None` is a name of ours, and
    /// for a program its own.
    pub user_agent: Option<String>,
}

impl Candidate {
    /// What the playout knows of this candidate.
    pub fn playout_candidate(&self) -> PlayoutCandidate {
        PlayoutCandidate {
            stream: self.stream,
            profile: self.pool.profile,
            redirect: self.profile == Delivery::Redirect,
        }
    }
}

impl Plan {
    /// Whether a refusal by this pool's provider, right after a slot came back, is worth waiting for.
    ///
    /// A provider that counts connections may still count the closed one. Where a candidate of another account
    /// profile can be tried meanwhile, a viewer is better served by that.
    pub fn waits_for_release(&self, pool: &SlotPool) -> bool {
        pool.max_streams != 0 && self.candidates.iter().all(|it| it.pool.profile == pool.profile)
    }
}

/// The pool of slots that a candidate draws from: one per account profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPool {
    pub account: AccountId,
    pub account_name: String,
    pub profile: ProfileId,
    /// Connections at one time; 0 is no limit.
    pub max_streams: u32,
    pub release_delay: Duration,
}

impl SlotPool {
    fn new(account: &Account, profile: &AccountProfile) -> Self {
        Self {
            account: account.id,
            account_name: account.name.clone(),
            profile: profile.id,
            max_streams: profile.max_streams,
            release_delay: account.release_delay,
        }
    }
}

/// Where a plan finds the records that it is made of.
pub trait PlanRecords {
    fn stream(&self, id: StreamId) -> Option<Arc<Stream>>;
    fn account(&self, id: AccountId) -> Option<Arc<Account>>;
    /// `None` also where it is inactive.
    fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>>;
    /// For streams and channels that refer to no profile.
    fn default_profile(&self) -> Arc<StreamProfile>;
    fn conditions(&self) -> &PlanContext;
}

/// Makes the plan of a channel.
///
/// Streams in the order of the channel; within a stream the active profiles of its account, the default one
/// first, each with the address as the profile rewrites it. A stream is handed on by its own stream profile, else by
/// its channel's, else by default. What the gateway does not read itself goes through ffmpeg, where there is one.
/// Streams that are not there any more, and those of inactive accounts, are left out without a word.
pub fn plan_channel(channel: &Channel, records: &impl PlanRecords) -> Plan {
    let mut plan = Plan {
        uuid: channel.uuid,
        name: channel.name.clone(),
        number: channel.number,
        candidates: Vec::new(),
        unplayable: Vec::new(),
    };
    let profile_of = |id: Option<StreamProfileId>| id.and_then(|it| records.stream_profile(it));
    let channel_profile = profile_of(channel.stream_profile);
    let mut rewrites = Rewrites::default();
    let mut readers = Readers::new(records.conditions().has_ffmpeg, channel.uuid);
    for stream in channel.streams.iter().filter_map(|id| records.stream(*id)) {
        let Some(account) = records.account(stream.account).filter(|it| it.is_active) else { continue };
        let profile = profile_of(stream.stream_profile).or_else(|| channel_profile.clone());
        let profile = profile.unwrap_or_else(|| records.default_profile());
        let mut headers = stream.provider.headers.over(&account.headers);
        if let Some(agent) = &profile.user_agent {
            headers.user_agent = Some(agent.clone());
        } else if headers.user_agent.is_none() {
            headers.user_agent.clone_from(&records.conditions().user_agent);
        }
        let n_before = plan.candidates.len();
        let mut reason = None;
        for account_profile in account.active_profiles() {
            let url = rewrites.apply(account_profile, stream.url());
            match readers.of(&url, &profile, &headers) {
                Ok((delivery, command)) => plan.candidates.push(Candidate {
                    stream: stream.id,
                    stream_name: stream.name().to_owned(),
                    kind: SourceKind::of(&url),
                    url,
                    headers: headers.clone(),
                    profile: delivery,
                    command,
                    pool: SlotPool::new(&account, account_profile),
                }),
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        if let Some(reason) = reason.filter(|_| plan.candidates.len() == n_before) {
            plan.unplayable.push((stream.id, reason));
        }
    }
    plan
}

/// The patterns of account profiles, each compiled once per plan.
#[derive(Default)]
struct Rewrites(HashMap<ProfileId, Option<Pattern>>);

impl Rewrites {
    /// The address as this profile plays it. A pattern that does not compile changes nothing: it is refused when it is
    /// written, so here it can only be an old one, and the account's own login still plays.
    fn apply(&mut self, profile: &AccountProfile, url: &SourceUrl) -> SourceUrl {
        let compile = || Pattern::new(&profile.search_pattern, &profile.replace_pattern).ok();
        let pattern = self.0.entry(profile.id).or_insert_with(compile);
        match pattern.as_ref().map(|it| it.apply(url.expose())) {
            Some(Cow::Owned(text)) => SourceUrl::new(text),
            _ => url.clone(),
        }
    }
}

/// Makes the plan of one stream alone, as somebody looks at it who decides about it.
///
/// It has a uuid of its own, derived from the stream's id, so that no channel is taken for it.
pub fn plan_preview(stream: &Stream, records: &impl PlanRecords) -> Plan {
    let mut channel = Channel::new(ChannelId(0), preview_uuid(stream.id), stream.name(), 0);
    channel.streams = vec![stream.id];
    plan_channel(&channel, records)
}

/// Makes the plan of one stream as this profile hands it on, whichever one it refers to; also where the profile is
/// inactive. For a trial of the profile.
pub fn plan_trial(
    stream: &Stream,
    account: &Account,
    profile: &StreamProfile,
    conditions: PlanContext,
) -> Plan {
    let stream = Stream { stream_profile: Some(profile.id), ..stream.clone() };
    let tried = Tried { stream: Arc::new(stream), account, profile, conditions };
    plan_preview(&tried.stream, &tried)
}

/// The records of a trial: there are no others.
struct Tried<'a> {
    stream: Arc<Stream>,
    account: &'a Account,
    profile: &'a StreamProfile,
    conditions: PlanContext,
}

impl PlanRecords for Tried<'_> {
    fn stream(&self, _: StreamId) -> Option<Arc<Stream>> {
        Some(self.stream.clone())
    }

    fn account(&self, _: AccountId) -> Option<Arc<Account>> {
        Some(Arc::new(self.account.clone()))
    }

    fn stream_profile(&self, _: StreamProfileId) -> Option<Arc<StreamProfile>> {
        Some(self.default_profile())
    }

    fn default_profile(&self) -> Arc<StreamProfile> {
        Arc::new(self.profile.clone())
    }

    fn conditions(&self) -> &PlanContext {
        &self.conditions
    }
}

/// The uuid of a preview of this stream.
pub fn preview_uuid(stream: StreamId) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("stream:{stream}").as_bytes())
}

/// Who reads which address of one plan; each command is read once.
struct Readers {
    has_ffmpeg: bool,
    channel_id: String,
    templates: HashMap<StreamProfileId, Option<Result<CommandTemplate, CommandTemplateError>>>,
}

impl Readers {
    fn new(has_ffmpeg: bool, channel: Uuid) -> Self {
        Self { has_ffmpeg, channel_id: channel.to_string(), templates: HashMap::new() }
    }

    /// What the kind of an address makes of the profile in force.
    ///
    /// A redirect asks nothing of us, so any address that a viewer can be sent to over HTTP will do. A file is
    /// played even under *redirect*: its address means nothing to a viewer and tells how our disk looks.
    fn of(
        &mut self,
        url: &SourceUrl,
        profile: &StreamProfile,
        headers: &RequestHeaders,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        match profile.delivery {
            Delivery::Redirect if is_http(url) => Ok((Delivery::Redirect, None)),
            Delivery::Proxy | Delivery::Redirect => match SourceKind::of(url).reader(self.has_ffmpeg)? {
                StreamReader::Gateway => Ok((Delivery::Proxy, None)),
                StreamReader::Ffmpeg => self.command(url, &StreamProfile::of(Delivery::Command), headers),
            },
            Delivery::Command => self.command(url, profile, headers),
        }
    }

    fn command(
        &mut self,
        url: &SourceUrl,
        profile: &StreamProfile,
        headers: &RequestHeaders,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        if !is_for_programs(url) {
            return Err(Unplayable::FOR_NO_PROGRAM);
        }
        let template = self.templates.entry(profile.id).or_insert_with(|| profile.template());
        let Some(Ok(template)) = template else { return Err(Unplayable::COMMAND) };
        let argv = template.fill(CommandValues {
            stream_url: url.expose(),
            // Where nothing is said over HTTP there is nobody to say it to, and programs trip over the option.
            user_agent: headers.user_agent.as_deref().filter(|_| is_http(url)),
            channel_id: &self.channel_id,
        });
        Ok((Delivery::Command, Some(argv)))
    }
}

fn is_http(url: &SourceUrl) -> bool {
    ["http", "https"].iter().any(|it| url.scheme().eq_ignore_ascii_case(it))
}

/// Whether a program may be given this address. It comes from a provider's list, and must neither pass for an option
/// nor make ffmpeg read our files under a name of its own.
fn is_for_programs(url: &SourceUrl) -> bool {
    const NO_PLACES: [&str; 13] = [
        "async", "cache", "concat", "concatf", "crypto", "data", "fd", "ipfs", "md5", "pipe", "subfile",
        "tee", "unix",
    ];
    let scheme = url.scheme().to_ascii_lowercase();
    // Of `crypto+http` too.
    let first = scheme.split('+').next().unwrap_or_default();
    !first.is_empty() && !NO_PLACES.contains(&first) && !url.expose().contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::PlaylistLocation;
    use crate::stream::StreamProperties;

    fn stream(id: u32, account: u32, url: &str) -> Stream {
        let facts = StreamProperties {
            name: format!("stream {id}"),
            url: SourceUrl::new(url),
            headers: RequestHeaders::default(),
            tvg_id: None,
            group: None,
            logo: None,
            number: None,
        };
        Stream::new(StreamId(id), AccountId(account), facts, 0)
    }

    /// An account whose profiles have the ids `id * 10`, `id * 10 + 1` …; the last one is the default.
    fn account(id: u32, n_profiles: u32) -> Account {
        let profile = |it| AccountProfile {
            is_default: it + 1 == n_profiles,
            ..AccountProfile::default_of(ProfileId(id * 10 + it), "", it)
        };
        let first = AccountProfile::default_of(ProfileId(0), "", 0);
        Account {
            release_delay: Duration::from_secs(id.into()),
            profiles: (0..n_profiles).map(profile).collect(),
            ..Account::new(AccountId(id), format!("account {id}"), PlaylistLocation::None, first, 0)
        }
    }

    /// Records in memory.
    struct Shelf {
        streams: Vec<Stream>,
        accounts: Vec<Account>,
        profiles: Vec<StreamProfile>,
        default: Delivery,
        conditions: PlanContext,
    }

    impl PlanRecords for Shelf {
        fn stream(&self, id: StreamId) -> Option<Arc<Stream>> {
            self.streams.iter().find(|it| it.id == id).cloned().map(Arc::new)
        }

        fn account(&self, id: AccountId) -> Option<Arc<Account>> {
            self.accounts.iter().find(|it| it.id == id).cloned().map(Arc::new)
        }

        fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>> {
            self.profiles.iter().find(|it| it.id == id && it.is_active).cloned().map(Arc::new)
        }

        fn default_profile(&self) -> Arc<StreamProfile> {
            Arc::new(StreamProfile::of(self.default))
        }

        fn conditions(&self) -> &PlanContext {
            &self.conditions
        }
    }

    fn shelf(streams: &[Stream], accounts: &[Account], default: Delivery) -> Shelf {
        let profiles = StreamProfile::built_in().to_vec();
        let conditions = PlanContext::default();
        Shelf { streams: streams.to_vec(), accounts: accounts.to_vec(), profiles, default, conditions }
    }

    fn plan_of(streams: &[Stream], accounts: &[Account], default: Delivery) -> Plan {
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
        // One that is not there any more, too.
        channel.streams = streams.iter().map(|it| it.id).chain([StreamId(99)]).collect();
        plan_channel(&channel, &shelf(streams, accounts, default))
    }

    fn order(plan: &Plan) -> Vec<(u32, u32)> {
        plan.candidates.iter().map(|it| (it.stream.0, it.pool.profile.0)).collect()
    }

    #[test]
    fn candidates_are_streams_in_order_each_with_the_profiles_of_its_account_the_default_one_first() {
        let streams = [stream(2, 1, "http://h/2"), stream(1, 2, "http://h/1"), stream(3, 1, "http://h/3")];
        let plan = plan_of(&streams, &[account(1, 2), account(2, 1)], Delivery::Proxy);
        assert_eq!(order(&plan), [(2, 11), (2, 10), (1, 20), (3, 11), (3, 10)]);
        let pool = &plan.candidates[0].pool;
        assert_eq!(
            (pool.max_streams, pool.account_name.as_str(), pool.release_delay.as_secs()),
            (1, "account 1", 1)
        );
    }

    #[test]
    fn a_preview_plays_one_stream_from_every_profile_of_its_account_under_a_uuid_of_its_own() {
        let preview_of = |id| {
            let stream = stream(id, 1, "http://h/x");
            plan_preview(&stream, &shelf(std::slice::from_ref(&stream), &[account(1, 2)], Delivery::Proxy))
        };
        assert_eq!(order(&preview_of(7)), [(7, 11), (7, 10)]);
        assert_ne!(preview_of(7).uuid, preview_of(8).uuid);
    }

    #[test]
    fn a_trial_plays_a_stream_as_the_tried_profile_does_whatever_else_is_said_of_it() {
        let account = account(1, 2);
        let mut stream = stream(1, 1, "http://h/1.ts");
        stream.stream_profile = Some(StreamProfileId(2));
        for mut profile in StreamProfile::built_in() {
            (profile.is_active, profile.user_agent) = (false, Some("agent".to_owned()));
            let plan = plan_trial(&stream, &account, &profile, PlanContext::default());
            assert_eq!(order(&plan), [(1, 11), (1, 10)]);
            let candidate = &plan.candidates[0];
            assert_eq!(candidate.profile, profile.delivery);
            assert_eq!(candidate.headers.user_agent.as_deref(), Some("agent"));
            let program = candidate.command.as_ref().map(|it| it.program.as_str());
            assert_eq!(program.unwrap_or_default(), profile.command);
        }
    }

    #[test]
    fn the_profile_of_a_stream_comes_before_that_of_its_channel_and_an_inactive_one_counts_as_none() {
        let mut redirected = stream(1, 1, "http://h/1");
        redirected.stream_profile = Some(StreamProfileId(2));
        let mut shelf = shelf(&[redirected], &[account(1, 1)], Delivery::Proxy);
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
        channel.streams = vec![StreamId(1)];
        channel.stream_profile = Some(StreamProfileId(1));
        assert_eq!(plan_channel(&channel, &shelf).candidates[0].profile, Delivery::Redirect);
        shelf.profiles[1].is_active = false;
        shelf.profiles[0].user_agent = Some("agent".to_owned());
        let candidate = plan_channel(&channel, &shelf).candidates.remove(0);
        assert_eq!(candidate.profile, Delivery::Proxy);
        assert_eq!(candidate.headers.user_agent.as_deref(), Some("agent"));
    }

    #[test]
    fn providers_are_told_the_agent_of_the_profile_else_the_stream_else_the_account_else_the_gateway() {
        let check = |[profile, stream_says, account_says, gateway]: [Option<&str>; 4],
                     expected: Option<&str>| {
            let (mut stream, mut account) = (stream(1, 1, "http://h/1"), account(1, 1));
            let own = |it: Option<&str>| it.map(str::to_owned);
            stream.provider.headers.user_agent = own(stream_says);
            account.headers.user_agent = own(account_says);
            let mut shelf = shelf(&[stream], &[account], Delivery::Proxy);
            shelf.conditions.user_agent = own(gateway);
            shelf.profiles[0].user_agent = own(profile);
            let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
            channel.streams = vec![StreamId(1)];
            channel.stream_profile = Some(shelf.profiles[0].id);
            let candidate = plan_channel(&channel, &shelf).candidates.remove(0);
            assert_eq!(candidate.headers.user_agent.as_deref(), expected);
        };
        check([Some("p"), Some("s"), Some("a"), Some("g")], Some("p"));
        check([None, Some("s"), Some("a"), Some("g")], Some("s"));
        check([None, None, Some("a"), Some("g")], Some("a"));
        check([None, None, None, Some("g")], Some("g"));
        check([None; 4], None);
    }

    #[test]
    fn what_is_inactive_or_gone_is_left_out() {
        let streams = [stream(1, 1, "http://h/1"), stream(2, 2, "http://h/2"), stream(3, 3, "http://h/3")];
        let (mut one, mut two) = (account(1, 2), account(2, 1));
        one.profiles[1].is_active = false;
        two.is_active = false;
        let plan = plan_of(&streams, &[one, two], Delivery::Proxy);
        assert_eq!(order(&plan), [(1, 10)]);
        assert_eq!(plan.unplayable, []);
    }

    #[test]
    fn a_stream_that_cannot_be_played_is_left_out_and_told_once() {
        let streams =
            [stream(1, 1, "http://h/1.m3u8"), stream(2, 1, "udp://@239.0.0.1:1"), stream(3, 1, "http://h/3")];
        let plan = plan_of(&streams, &[account(1, 2)], Delivery::Proxy);
        assert_eq!(order(&plan), [(3, 11), (3, 10)]);
        let reasons: Vec<_> = plan.unplayable.iter().map(|(id, reason)| format!("{id}: {reason}")).collect();
        assert_eq!(
            reasons,
            [
                "1: HLS addresses need ffmpeg, which is not on this machine",
                "2: UDP addresses need ffmpeg, which is not on this machine"
            ]
        );
    }

    #[test]
    fn what_the_gateway_does_not_read_itself_goes_through_ffmpeg_where_there_is_one() {
        let check = |url: &str, default, delivery: Option<Delivery>| {
            let streams = [stream(1, 1, url)];
            let mut shelf = shelf(&streams, &[account(1, 1)], default);
            shelf.conditions.has_ffmpeg = true;
            let plan = plan_preview(&streams[0], &shelf);
            let candidate = plan.candidates.first();
            assert_eq!(candidate.map(|it| it.profile), delivery, "{url}");
            let command = candidate.and_then(|it| it.command.as_ref());
            assert_eq!(command.is_some(), delivery == Some(Delivery::Command), "{url}");
            if let Some(command) = command {
                assert_eq!(command.program, "ffmpeg");
                assert!(command.arguments.iter().any(|it| it == url), "{url}");
            }
        };
        for url in ["http://h/1.m3u8", "rtsp://h/1", "rtmp://h/1", "udp://@239.0.0.1:1", "rtp://@239.0.0.1:1"]
        {
            check(url, Delivery::Proxy, Some(Delivery::Command));
        }
        check("http://h/1.ts", Delivery::Proxy, Some(Delivery::Proxy));
        check("file:///1.ts", Delivery::Proxy, Some(Delivery::Proxy));
        check("srt://h:1", Delivery::Proxy, None);
        check("http://h/1.m3u8", Delivery::Redirect, Some(Delivery::Redirect));
        check("rtsp://h/1", Delivery::Redirect, Some(Delivery::Command));
        check("http://h/1.ts", Delivery::Command, Some(Delivery::Command));
        check("srt://h:1", Delivery::Command, Some(Delivery::Command));
        for url in
            ["-f", "/etc/passwd", "concat:///etc/passwd", "crypto+file:///x", "subfile,,:/x", "pipe://0"]
        {
            check(url, Delivery::Command, None);
        }
    }

    #[test]
    fn a_program_is_given_address_channel_and_the_user_agent_in_force() {
        let mut one = stream(1, 1, "http://h/a b");
        one.stream_profile = Some(StreamProfileId(9));
        let mut shelf = shelf(&[one], &[account(1, 1)], Delivery::Proxy);
        shelf.profiles.push(StreamProfile {
            id: StreamProfileId(9),
            command: "/opt/x".to_owned(),
            parameters: "-a {userAgent} {channelId} {streamUrl}".to_owned(),
            user_agent: Some("agent 1".to_owned()),
            ..StreamProfile::of(Delivery::Command)
        });
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
        channel.streams = vec![StreamId(1)];
        let command = |shelf: &Shelf| plan_channel(&channel, shelf).candidates.remove(0).command.unwrap();
        let id = Uuid::nil().to_string();
        assert_eq!(command(&shelf).program, "/opt/x");
        assert_eq!(command(&shelf).arguments, ["-a", "agent 1", id.as_str(), "http://h/a b"]);
        shelf.streams[0].provider.url = SourceUrl::new("udp://@239.0.0.1:1");
        assert_eq!(command(&shelf).arguments, [id.as_str(), "udp://@239.0.0.1:1"]);
    }

    #[test]
    fn an_account_profile_plays_the_streams_of_the_account_with_its_own_login() {
        let urls = |find: &str, replace: &str| {
            let mut account = account(1, 2);
            account.profiles[0].search_pattern = find.to_owned();
            account.profiles[0].replace_pattern = replace.to_owned();
            let streams = [stream(1, 1, "http://h/live/u/p/1.ts"), stream(2, 1, "http://h/other/2")];
            let plan = plan_of(&streams, &[account], Delivery::Proxy);
            plan.candidates.iter().map(|it| it.url.expose().to_owned()).collect::<Vec<_>>()
        };
        let same =
            ["http://h/live/u/p/1.ts", "http://h/live/u/p/1.ts", "http://h/other/2", "http://h/other/2"];
        assert_eq!(urls("", ""), same);
        assert_eq!(urls("/u/p/", "/u2/p2/")[..2], ["http://h/live/u/p/1.ts", "http://h/live/u2/p2/1.ts"]);
        assert_eq!(urls("/u/p/", "/u2/p2/")[2..], same[2..], "an address that does not match stays");
        assert_eq!(
            urls("^(http://)[^/]+/live/[^/]+/[^/]+/", r"\1h2/live/a/b/")[1],
            "http://h2/live/a/b/1.ts"
        );
        assert_eq!(urls("(", "x"), same, "a pattern that cannot be used leaves the address alone");
    }

    #[test]
    fn what_can_be_played_is_told_from_the_address_that_the_profile_makes() {
        let mut account = account(1, 2);
        account.profiles[0].search_pattern = "m3u8$".to_owned();
        account.profiles[0].replace_pattern = "ts".to_owned();
        let plan = plan_of(&[stream(1, 1, "http://h/1.m3u8")], &[account], Delivery::Proxy);
        assert_eq!((order(&plan), plan.candidates[0].kind), (vec![(1, 10)], SourceKind::HttpTs));
        assert_eq!(plan.unplayable, []);
    }

    #[test]
    fn a_viewer_can_be_redirected_to_any_http_address_but_to_none_of_our_files() {
        let streams =
            [stream(1, 1, "http://h/1.m3u8"), stream(2, 1, "file:///secret/2.ts"), stream(3, 1, "rtp://h:1")];
        let plan = plan_of(&streams, &[account(1, 1)], Delivery::Redirect);
        let places: Vec<_> =
            plan.candidates.iter().map(|it| (it.stream.0, it.playout_candidate().redirect)).collect();
        assert_eq!(places, [(1, true), (2, false)]);
        assert_eq!(plan.unplayable.len(), 1);
    }

    /// A refusal that may be late counting holds a viewer up only where nothing else can be tried.
    #[test]
    fn a_late_counting_provider_is_waited_for_only_where_everything_stands_on_its_limited_pool() {
        let check = |profiles: &[(u32, u32)], expected| {
            let mut candidates =
                plan_of(&[stream(1, 1, "http://h/1")], &[account(1, 1)], Delivery::Proxy).candidates;
            let candidate = candidates.remove(0);
            let with = |&(profile, max_streams)| {
                let pool = SlotPool { profile: ProfileId(profile), max_streams, ..candidate.pool.clone() };
                Candidate { pool, ..candidate.clone() }
            };
            let mut plan = plan_of(&[], &[], Delivery::Proxy);
            plan.candidates = profiles.iter().map(with).collect();
            assert_eq!(plan.waits_for_release(&plan.candidates[0].pool), expected, "{profiles:?}");
        };
        check(&[(1, 1)], true);
        check(&[(1, 1), (1, 1)], true);
        check(&[(1, 1), (2, 1)], false);
        check(&[(1, 0)], false);
    }
}
