//! Tests of the playout that read as sentences: what happens on the left, what is done about it on the right.
//!
//! Places are named by a letter for the stream and a digit for the account profile; without a digit each stream
//! has an account of its own. `a>` is a redirect. The script plays the owner: it remembers what it was told to do,
//! so a line says only what is new.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::ids::{ProfileId, StreamId};
use crate::playout::{
    Action, Attempt, AttemptReason, AttemptStep, Failure, FailureScope, GiveUp, Input, Playout,
    PlayoutCandidate, PlayoutChange, PlayoutSettings, PlayoutState, SwitchRefusal, SwitchTarget,
};

/// Settings of the tables: the defaults, without chance.
pub(super) fn settings() -> PlayoutSettings {
    PlayoutSettings { rest_jitter: 0.0, ..PlayoutSettings::default() }
}

pub(super) fn check(places: &str, lines: &[(&str, &str)]) {
    check_with(places, settings(), lines);
}

pub(super) fn check_with(places: &str, settings: PlayoutSettings, lines: &[(&str, &str)]) {
    let mut script = Script::new(places, settings);
    for (at, (happens, expected)) in lines.iter().enumerate() {
        let done = script.happens(happens);
        assert_eq!(done, *expected, "line {}: {happens}\n{:#?}", at + 1, script.playout.state());
    }
}

pub(super) fn failure(name: &str) -> Failure {
    let (scope, retry, just_released) = match name {
        "404" | "stall" => (FailureScope::Stream, false, false),
        "403" => (FailureScope::Candidate, false, false),
        "503" => (FailureScope::Stream, true, false),
        "reset" | "refused" => (FailureScope::Candidate, true, false),
        "429 too soon" => (FailureScope::Candidate, false, true),
        other => panic!("no failure is called {other}"),
    };
    Failure { scope, retry, just_released }
}

fn place(text: &str) -> PlayoutCandidate {
    let mut chars = text.trim_end_matches('>').chars();
    let letter = chars.next().expect("a name") as u32;
    let profile = chars.as_str().parse().unwrap_or(letter);
    PlayoutCandidate { stream: StreamId(letter), profile: ProfileId(profile), redirect: text.ends_with('>') }
}

fn places(text: &str) -> Vec<PlayoutCandidate> {
    text.split_whitespace().map(place).collect()
}

pub(super) struct Script {
    pub(super) playout: Playout,
    pub(super) now: Instant,
    names: HashMap<(StreamId, ProfileId), String>,
    /// Which place each attempt was granted.
    granted: Vec<(Attempt, String)>,
}

impl Script {
    pub(super) fn new(text: &str, settings: PlayoutSettings) -> Self {
        #[expect(clippy::disallowed_methods, reason = "any instant will do: from here on time is made up")]
        let now = Instant::now();
        let playout = Playout::new(places(text), settings, 7);
        let mut script = Self { playout, now, names: HashMap::new(), granted: Vec::new() };
        script.learn(text);
        script
    }

    fn learn(&mut self, text: &str) {
        for name in text.split_whitespace() {
            let place = place(name);
            self.names.insert((place.stream, place.profile), name.trim_end_matches('>').to_owned());
        }
    }

    /// Has one line happen and says what was done about it.
    pub(super) fn happens(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["start"] => self.tell(Input::Start),
            ["yield"] => self.tell(Input::Yield),
            ["stop"] => self.tell(Input::Stop),
            ["tick"] => self.tell(Input::Tick),
            ["switch", "to", "next"] => self.tell(Input::Switch(SwitchTarget::Next)),
            ["switch", "to", "preferred"] => self.tell(Input::Switch(SwitchTarget::Preferred)),
            ["switch", "to", "nowhere"] => self.tell(Input::Switch(SwitchTarget::To(99))),
            ["switch", "to", name] => {
                let index = self.index(name);
                self.tell(Input::Switch(SwitchTarget::To(index)))
            }
            ["the", "plan", "is", rest @ ..] => {
                let text = rest.join(" ");
                self.learn(&text);
                self.tell(Input::Replan(places(&text)))
            }
            ["time", "passes"] => self.time_passes(),
            ["after", number, unit] => {
                let number: f64 = number.parse().expect("a number");
                let unit = match *unit {
                    "s" => 1.0,
                    "min" => 60.0,
                    "h" => 3600.0,
                    other => panic!("no unit is called {other}"),
                };
                self.wait(Duration::from_secs_f64(number * unit))
            }
            ["full"] => {
                let attempt = self.under_way().0;
                self.tell(Input::Full { attempt })
            }
            [name, "is", "granted"] => self.grant(name),
            [name, "opens"] => {
                self.bring_to(name, 1);
                let attempt = self.under_way().0;
                self.tell(Input::Opened { attempt })
            }
            [name, "plays"] => {
                self.bring_to(name, 2);
                let attempt = self.under_way().0;
                self.tell(Input::Playing { attempt })
            }
            ["new", _name, "is", "lost:", why @ ..] => {
                let (attempt, failure) = (self.under_way().0, failure(&why.join(" ")));
                self.tell(Input::Lost { attempt, failure })
            }
            ["old", name, rest @ ..] => self.late(name, rest),
            [name, "is", "lost:", why @ ..] => {
                let failure = failure(&why.join(" "));
                let attempt = match self.playout.playing() {
                    Some((attempt, index)) if self.name(index) == *name => attempt,
                    _ => {
                        self.bring_to(name, 1);
                        self.under_way().0
                    }
                };
                self.tell(Input::Lost { attempt, failure })
            }
            _ => panic!("nobody knows what this means: {line}"),
        }
    }

    pub(super) fn tell(&mut self, input: Input) -> String {
        let actions = self.playout.on(input, self.now);
        self.told(&actions)
    }

    /// Late news of the last attempt at this place that is over.
    fn late(&mut self, name: &str, what: &[&str]) -> String {
        let under_way = self.opening().filter(|(_, step)| !matches!(step, AttemptStep::Waiting { .. }));
        let current = [self.playout.playing().map(|it| it.0), under_way.map(|it| it.0)];
        let attempt = self
            .granted
            .iter()
            .rev()
            .find(|(attempt, it)| it == name && !current.contains(&Some(*attempt)))
            .expect("an old attempt at this place")
            .0;
        let index = self.index(name);
        match what {
            ["is", "granted"] => self.tell(Input::Granted { attempt, index }),
            ["is", "full"] => self.tell(Input::Full { attempt }),
            ["opens"] => self.tell(Input::Opened { attempt }),
            ["plays"] => self.tell(Input::Playing { attempt }),
            ["is", "lost:", why @ ..] => {
                let failure = failure(&why.join(" "));
                self.tell(Input::Lost { attempt, failure })
            }
            _ => panic!("nobody knows what this means: {what:?}"),
        }
    }

    fn grant(&mut self, name: &str) -> String {
        let (attempt, step) = self.under_way();
        let order = if let AttemptStep::Asked { order, .. } = step { order } else { Vec::new() };
        let index = order.into_iter().find(|it| self.name(*it) == name).expect("asked for by this name");
        self.granted.push((attempt, name.to_owned()));
        self.tell(Input::Granted { attempt, index })
    }

    /// Takes the attempt under way to where it has a lease (1) or a source that the pump follows (2).
    fn bring_to(&mut self, name: &str, step: u8) {
        if matches!(self.under_way().1, AttemptStep::Asked { .. }) {
            assert_eq!(self.grant(name), format!("open {name}"));
        }
        if step == 2 && matches!(self.under_way().1, AttemptStep::Dialling { .. }) {
            let attempt = self.under_way().0;
            assert_eq!(self.tell(Input::Opened { attempt }), format!("follow {name}"));
        }
        let (AttemptStep::Dialling { index, .. } | AttemptStep::Following { index, .. }) = self.under_way().1
        else {
            panic!("no lease: {:?}", self.playout.state());
        };
        assert_eq!(self.name(index), name, "another place is under way");
    }

    fn under_way(&self) -> (Attempt, AttemptStep) {
        self.opening().unwrap_or_else(|| panic!("nothing is under way: {:?}", self.playout.state()))
    }

    fn opening(&self) -> Option<(Attempt, AttemptStep)> {
        match self.playout.state() {
            PlayoutState::Opening(next) | PlayoutState::Switching { next, .. } => {
                Some((next.attempt, next.step.clone()))
            }
            _ => None,
        }
    }

    /// Time passes until the next tick; says how long that took.
    fn time_passes(&mut self) -> String {
        let deadline = self.playout.deadline().expect("a deadline");
        let time = deadline.saturating_duration_since(self.now);
        self.now += time;
        let done = self.tell(Input::Tick);
        format!("after {time:?}: {done}")
    }

    /// So much time passes, with a tick at every deadline.
    fn wait(&mut self, time: Duration) -> String {
        let end = self.now + time;
        let mut done = Vec::new();
        while let Some(deadline) = self.playout.deadline().filter(|it| *it <= end) {
            self.now = self.now.max(deadline);
            done.push(self.tell(Input::Tick));
        }
        self.now = end;
        if done.is_empty() { "nothing".to_owned() } else { done.join(", ") }
    }

    fn index(&self, name: &str) -> usize {
        (0..self.playout.candidates().len()).find(|it| self.name(*it) == name).expect("a place of this name")
    }

    fn name(&self, index: usize) -> String {
        let place = self.playout.candidates().nth(index).expect("an index of a place");
        self.names[&(place.stream, place.profile)].clone()
    }

    fn told(&self, actions: &[Action]) -> String {
        let texts: Vec<String> = actions.iter().map(|it| self.text(it)).collect();
        if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
    }

    fn text(&self, action: &Action) -> String {
        match action {
            Action::Ask { order, why, .. } => {
                let names: Vec<String> = order.iter().map(|it| self.name(*it)).collect();
                let suffix = if *why == AttemptReason::Switch { " to switch" } else { "" };
                format!("ask {}{suffix}", names.join(" "))
            }
            Action::Open { index, .. } => format!("open {}", self.name(*index)),
            Action::Follow { .. } => match self.under_way().1 {
                AttemptStep::Following { index, .. } => format!("follow {}", self.name(index)),
                other => panic!("follows {other:?}"),
            },
            Action::Abandon { .. } => "abandon".to_owned(),
            Action::Release => "let go".to_owned(),
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
            PlayoutChange::FailedOver { from, to } => {
                format!("failed over from {} to {}", name(from), name(to))
            }
            PlayoutChange::Switched { from, to } => format!("switched from {} to {}", name(from), name(to)),
            PlayoutChange::SwitchFailed { to, returned_to: Some(it) } => {
                format!("switch to {} failed, {} plays", name(to), name(it))
            }
            PlayoutChange::SwitchFailed { to, returned_to: None } => {
                format!("switch to {} failed, nothing plays", name(to))
            }
            PlayoutChange::SwitchRefused(SwitchRefusal::Busy) => "refused: busy".to_owned(),
            PlayoutChange::SwitchRefused(SwitchRefusal::NoSuchCandidate) => {
                "refused: no such place".to_owned()
            }
            PlayoutChange::SwitchNoted { to } => format!("noted {}", name(to)),
            PlayoutChange::BackingOff { until } => {
                format!("rest {:?}", until.saturating_duration_since(self.now))
            }
        }
    }
}
