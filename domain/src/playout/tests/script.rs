//! Tests of the playout that read as sentences: an event on the left, the resulting actions on the right.
//!
//! Candidates are named by a letter for the stream and a digit for the account profile; without a digit each stream has
//! its own account. `a>` is a redirect, and `a!` is left when its picture stands still. The script acts as the owner and remembers earlier actions, so a line contains
//! only what is new.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::ids::{ProfileId, StreamId};
use crate::playout::{
    Action, Attempt, AttemptReason, AttemptStep, Failure, FailureKind, FailureScope, GiveUp, Input, Lack,
    Playout, PlayoutCandidate, PlayoutChange, PlayoutSettings, PlayoutState, SwitchRefusal, SwitchTarget,
};

/// Settings of the tables: the defaults without jitter.
pub(super) fn settings() -> PlayoutSettings {
    PlayoutSettings { backoff_jitter: 0.0, ..PlayoutSettings::default() }
}

pub(super) fn check(candidates: &str, lines: &[(&str, &str)]) {
    check_with(candidates, settings(), lines);
}

pub(super) fn check_with(candidates: &str, settings: PlayoutSettings, lines: &[(&str, &str)]) {
    let mut script = Script::new(candidates, settings);
    for (at, (happens, expected)) in lines.iter().enumerate() {
        let done = script.happens(happens);
        assert_eq!(done, *expected, "line {}: {happens}\n{:#?}", at + 1, script.playout.state());
    }
}

pub(super) fn failure(name: &str) -> Failure {
    let kind = match name {
        "reset" => FailureKind::Ended,
        "stall" => FailureKind::Silent,
        _ => FailureKind::Other,
    };
    let (scope, retry, is_permanent, just_released) = match name {
        "404" => (FailureScope::Stream, false, true, false),
        "timeout" | "stall" => (FailureScope::Stream, false, false, false),
        "403" => (FailureScope::Candidate, false, true, false),
        "429" => (FailureScope::Candidate, false, false, false),
        "503" => (FailureScope::Stream, true, false, false),
        "reset" | "refused" => (FailureScope::Candidate, true, false, false),
        "403 too soon" => (FailureScope::Candidate, false, false, true),
        "403 beside others" => (FailureScope::Candidate, false, true, true),
        other => panic!("unknown failure {other}"),
    };
    Failure { scope, retry, is_permanent, just_released, kind }
}

fn lack(part: &str) -> Lack {
    match part {
        "picture" => Lack::Picture,
        "sound" => Lack::Sound,
        "motion" => Lack::Motion,
        other => panic!("unknown part {other}"),
    }
}

fn part(lack: Lack) -> &'static str {
    match lack {
        Lack::Picture => "picture",
        Lack::Sound => "sound",
        Lack::Motion => "motion",
    }
}

fn bare_name(text: &str) -> &str {
    text.trim_end_matches(['>', '!'])
}

fn candidate(text: &str) -> PlayoutCandidate {
    let mut chars = bare_name(text).chars();
    let letter = chars.next().expect("a name") as u32;
    let profile = chars.as_str().parse().unwrap_or(letter);
    PlayoutCandidate {
        stream: StreamId(letter),
        profile: ProfileId(profile),
        redirect: text.ends_with('>'),
        leaves_still_picture: text.ends_with('!'),
    }
}

fn candidates(text: &str) -> Vec<PlayoutCandidate> {
    text.split_whitespace().map(candidate).collect()
}

pub(super) struct Script {
    pub(super) playout: Playout,
    pub(super) now: Instant,
    names: HashMap<(StreamId, ProfileId), String>,
    /// The candidate that each attempt was granted.
    granted: Vec<(Attempt, String)>,
}

impl Script {
    pub(super) fn new(text: &str, settings: PlayoutSettings) -> Self {
        #[expect(clippy::disallowed_methods, reason = "time is simulated from here on")]
        let now = Instant::now();
        let playout = Playout::new(candidates(text), settings, 7);
        let mut script = Self { playout, now, names: HashMap::new(), granted: Vec::new() };
        script.add_names(text);
        script
    }

    fn add_names(&mut self, text: &str) {
        for name in text.split_whitespace() {
            let candidate = candidate(name);
            self.names.insert((candidate.stream, candidate.profile), bare_name(name).to_owned());
        }
    }

    /// Carries out one line and describes the resulting actions.
    pub(super) fn happens(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["start"] => self.send(Input::Start),
            ["take", "over"] => self.send(Input::TakeOver { silent_since: self.now }),
            ["take", "over", "after", number, "s"] => {
                let silence = Duration::from_secs(number.parse().expect("a number"));
                self.send(Input::TakeOver { silent_since: self.now - silence })
            }
            ["yield"] => self.send(Input::Yield),
            ["stop"] => self.send(Input::Stop),
            ["tick"] => self.send(Input::Tick),
            ["switch", "to", "next"] => self.send(Input::Switch(SwitchTarget::Next)),
            ["switch", "to", "preferred"] => self.send(Input::Switch(SwitchTarget::Preferred)),
            ["switch", "to", "nowhere"] => self.send(Input::Switch(SwitchTarget::To(99))),
            ["switch", "to", name] => {
                let index = self.index(name);
                self.send(Input::Switch(SwitchTarget::To(index)))
            }
            ["the", "plan", "is", rest @ ..] => {
                let text = rest.join(" ");
                self.add_names(&text);
                self.send(Input::Replan(candidates(&text)))
            }
            ["time", "passes"] => self.time_passes(),
            ["after", number, unit] => {
                let number: f64 = number.parse().expect("a number");
                let unit = match *unit {
                    "s" => 1.0,
                    "min" => 60.0,
                    "h" => 3600.0,
                    other => panic!("unknown unit {other}"),
                };
                self.wait(Duration::from_secs_f64(number * unit))
            }
            ["full"] => {
                let attempt = self.in_progress().0;
                self.send(Input::Full { attempt })
            }
            [name, "is", "granted"] => self.grant(name),
            [name, "opens"] => {
                self.bring_to(name, 1);
                let attempt = self.in_progress().0;
                self.send(Input::Opened { attempt })
            }
            [name, "is", "ready"] => {
                self.bring_to(name, 1);
                let attempt = self.in_progress().0;
                self.send(Input::Ready { attempt })
            }
            [_name, "is", "silent"] => {
                let attempt = self.playout.playing().expect("a source plays").0;
                self.send(Input::Silent { attempt })
            }
            [_name, "lacks", "its", part, rest @ ..] => {
                let attempt = self.playout.playing().expect("a source plays").0;
                let avoid = match rest {
                    [] => Vec::new(),
                    ["as", "once", "did", names @ ..] => {
                        names.iter().map(|it| candidate(it).stream).collect()
                    }
                    _ => panic!("unknown line: {line}"),
                };
                self.send(Input::Lacks { attempt, lack: lack(part), avoid })
            }
            [_name, "has", "its", part, "again"] => {
                let attempt = self.playout.playing().expect("a source plays").0;
                self.send(Input::Complete { attempt, lack: lack(part) })
            }
            [_name, "sends", "again"] => {
                let attempt = self.playout.playing().expect("a source plays").0;
                self.send(Input::Resumed { attempt })
            }
            [name, "plays"] => {
                self.bring_to(name, 2);
                let attempt = self.in_progress().0;
                self.send(Input::Playing { attempt })
            }
            ["new", _name, "is", "lost:", why @ ..] => {
                let (attempt, failure) = (self.in_progress().0, failure(&why.join(" ")));
                self.send(Input::Lost { attempt, failure })
            }
            ["old", name, rest @ ..] => self.late(name, rest),
            [name, "is", "lost:", why @ ..] => {
                let failure = failure(&why.join(" "));
                let attempt = match self.playout.playing() {
                    Some((attempt, index)) if self.name(index) == *name => attempt,
                    _ => {
                        self.bring_to(name, 1);
                        self.in_progress().0
                    }
                };
                self.send(Input::Lost { attempt, failure })
            }
            _ => panic!("unknown line: {line}"),
        }
    }

    pub(super) fn send(&mut self, input: Input) -> String {
        let actions = self.playout.on(input, self.now);
        self.describe(&actions)
    }

    /// Sends a late message about the last finished attempt at this candidate.
    fn late(&mut self, name: &str, what: &[&str]) -> String {
        let in_progress = self.opening().filter(|(_, step)| !matches!(step, AttemptStep::Waiting { .. }));
        let current = [self.playout.playing().map(|it| it.0), in_progress.map(|it| it.0)];
        let attempt = self
            .granted
            .iter()
            .rev()
            .find(|(attempt, it)| it == name && !current.contains(&Some(*attempt)))
            .expect("an old attempt at this candidate")
            .0;
        let index = self.index(name);
        match what {
            ["is", "granted"] => self.send(Input::Granted { attempt, index }),
            ["is", "full"] => self.send(Input::Full { attempt }),
            ["opens"] => self.send(Input::Opened { attempt }),
            ["is", "ready"] => self.send(Input::Ready { attempt }),
            ["plays"] => self.send(Input::Playing { attempt }),
            ["is", "lost:", why @ ..] => {
                let failure = failure(&why.join(" "));
                self.send(Input::Lost { attempt, failure })
            }
            _ => panic!("unknown line: {what:?}"),
        }
    }

    fn grant(&mut self, name: &str) -> String {
        let (attempt, step) = self.in_progress();
        let order = if let AttemptStep::Asked { order, .. } = step { order } else { Vec::new() };
        let index = order.into_iter().find(|it| self.name(*it) == name).expect("asked for by this name");
        self.granted.push((attempt, name.to_owned()));
        self.send(Input::Granted { attempt, index })
    }

    /// Brings the attempt in progress to a lease (1) or to a source that the pump follows (2).
    fn bring_to(&mut self, name: &str, step: u8) {
        if matches!(self.in_progress().1, AttemptStep::Asked { .. }) {
            let done = self.grant(name);
            assert!(done.starts_with(&format!("open {name}")), "{done}");
        }
        if step == 2 && matches!(self.in_progress().1, AttemptStep::Dialling { .. }) {
            let attempt = self.in_progress().0;
            let verb = if self.playout.playing().is_some() { "prepare" } else { "follow" };
            assert_eq!(self.send(Input::Opened { attempt }), format!("{verb} {name}"));
        }
        if step == 2 && matches!(self.in_progress().1, AttemptStep::Preparing { .. }) {
            let attempt = self.in_progress().0;
            let done = self.send(Input::Ready { attempt });
            assert!(done.ends_with(&format!("follow {name}")), "{done}");
        }
        let (AttemptStep::Dialling { index, .. }
        | AttemptStep::Preparing { index, .. }
        | AttemptStep::Following { index, .. }) = self.in_progress().1
        else {
            panic!("no lease: {:?}", self.playout.state());
        };
        assert_eq!(self.name(index), name, "another candidate is in progress");
    }

    fn in_progress(&self) -> (Attempt, AttemptStep) {
        self.opening().unwrap_or_else(|| panic!("no attempt is in progress: {:?}", self.playout.state()))
    }

    fn opening(&self) -> Option<(Attempt, AttemptStep)> {
        match self.playout.state() {
            PlayoutState::Opening(next) | PlayoutState::Beside { next, .. } => {
                Some((next.attempt, next.step.clone()))
            }
            _ => None,
        }
    }

    /// Advances time to the next deadline, and reports how long that took.
    fn time_passes(&mut self) -> String {
        let deadline = self.playout.deadline().expect("a deadline");
        let time = deadline.saturating_duration_since(self.now);
        self.now += time;
        let done = self.send(Input::Tick);
        format!("after {time:?}: {done}")
    }

    /// Advances time, with a tick at every deadline.
    fn wait(&mut self, time: Duration) -> String {
        let end = self.now + time;
        let mut done = Vec::new();
        while let Some(deadline) = self.playout.deadline().filter(|it| *it <= end) {
            self.now = self.now.max(deadline);
            done.push(self.send(Input::Tick));
        }
        self.now = end;
        if done.is_empty() { "nothing".to_owned() } else { done.join(", ") }
    }

    fn index(&self, name: &str) -> usize {
        (0..self.playout.candidates().len())
            .find(|it| self.name(*it) == name)
            .expect("a candidate of this name")
    }

    pub(super) fn name(&self, index: usize) -> String {
        let candidate = self.playout.candidates().nth(index).expect("an index of a candidate");
        self.names[&(candidate.stream, candidate.profile)].clone()
    }

    fn describe(&self, actions: &[Action]) -> String {
        let texts: Vec<String> = actions.iter().map(|it| self.text(it)).collect();
        if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
    }

    fn text(&self, action: &Action) -> String {
        match action {
            Action::Ask { order, why, beside, .. } => {
                let names: Vec<String> = order.iter().map(|it| self.name(*it)).collect();
                let suffix = match why {
                    AttemptReason::Switch => " to switch",
                    AttemptReason::Silence => " beside",
                    AttemptReason::Lack(_) if *beside => " beside",
                    AttemptReason::Lack(_) => "",
                    AttemptReason::Start | AttemptReason::Failover => "",
                };
                format!("ask {}{suffix}", names.join(" "))
            }
            Action::Open { index, patience: None, .. } => format!("open {}", self.name(*index)),
            Action::Open { index, patience: Some(patience), .. } => {
                let to_connect = if patience.extends_connect { "" } else { " once connected" };
                format!("open {} within {:?}{to_connect}", self.name(*index), patience.first_packet)
            }
            Action::Follow { .. } => match self.in_progress().1 {
                AttemptStep::Following { index, .. } => format!("follow {}", self.name(index)),
                other => panic!("follows {other:?}"),
            },
            Action::Prepare { .. } => match self.in_progress().1 {
                AttemptStep::Preparing { index, .. } => format!("prepare {}", self.name(index)),
                other => panic!("prepares {other:?}"),
            },
            Action::Abandon { .. } => "abandon".to_owned(),
            Action::Release => "release".to_owned(),
            Action::Redirect { index } => format!("redirect to {}", self.name(*index)),
            Action::Changed(change) => self.change(change),
            Action::GiveUp(reason) => match reason {
                GiveUp::NoStreams => "give up: no streams",
                GiveUp::NoSlot => "give up: no slot",
                GiveUp::NothingPlays => "give up: nothing plays",
                GiveUp::Silent => "give up: silent",
            }
            .to_owned(),
        }
    }

    fn change(&self, change: &PlayoutChange) -> String {
        let name = |it: &usize| self.name(*it);
        match change {
            PlayoutChange::Started { index } => format!("started with {}", name(index)),
            PlayoutChange::Reconnected { index } => format!("{} is back", name(index)),
            PlayoutChange::LeftSilent { index } => format!("{} is left", name(index)),
            PlayoutChange::LeftLacking { index, lack } => {
                format!("{} is left without {}", name(index), part(*lack))
            }
            PlayoutChange::PlaysLacking { index, lack } => {
                format!("{} plays without {}", name(index), part(*lack))
            }
            PlayoutChange::FailedOver { from, to } => {
                format!("failed over from {} to {}", name(from), name(to))
            }
            PlayoutChange::Switched { from, to, is_manual } => {
                let what = if *is_manual { "switched" } else { "returned" };
                format!("{what} from {} to {}", name(from), name(to))
            }
            PlayoutChange::SwitchFailed { to, returned_to: Some(it) } => {
                format!("switch to {} failed, {} plays", name(to), name(it))
            }
            PlayoutChange::SwitchFailed { to, returned_to: None } => {
                format!("switch to {} failed, nothing plays", name(to))
            }
            PlayoutChange::SwitchRefused(SwitchRefusal::Busy) => "refused: busy".to_owned(),
            PlayoutChange::SwitchRefused(SwitchRefusal::NoSuchCandidate) => {
                "refused: no such candidate".to_owned()
            }
            PlayoutChange::SwitchNoted { to } => format!("noted {}", name(to)),
            PlayoutChange::BackingOff { until } => {
                format!("back off {:?}", until.saturating_duration_since(self.now))
            }
        }
    }
}
