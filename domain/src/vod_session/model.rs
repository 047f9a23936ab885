//! A model of sessions: random requests, seeks, pauses, cuts, failures and waiting viewers on a virtual clock.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// The content of the file at a position.
fn byte(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(31)) as u8
}

/// Maximum length of a file.
const LENGTH_MAX: u64 = 8_000_000;

fn bytes(at: u64, n_bytes: usize) -> Bytes {
    static CONTENT: LazyLock<Bytes> = LazyLock::new(|| (0..LENGTH_MAX).map(byte).collect::<Vec<_>>().into());
    CONTENT.slice(at as usize..at as usize + n_bytes)
}

/// The beginning and the end of the file, as a cache would have them.
struct Edges {
    n_bytes: u64,
    length: u64,
}

impl KnownBytes for Edges {
    fn piece(&self, at: u64) -> Option<Bytes> {
        let end = self.known_until(at);
        (end > at).then(|| bytes(at, (end - at).min(10_000) as usize))
    }

    fn known_until(&self, at: u64) -> u64 {
        match at {
            _ if at < self.n_bytes => self.n_bytes,
            _ if at + self.n_bytes >= self.length => self.length,
            _ => at,
        }
    }
}

#[derive(Debug, Clone)]
enum Action {
    /// A request from this part of the file on, in thousandths, of this length.
    Open {
        at: u16,
        n_bytes: u64,
    },
    /// A request at the position of the newest reader, moved by this distance.
    OpenNear(i32),
    Close(u8),
    /// A client asks for bytes.
    Read {
        reader: u8,
        n_pieces: u8,
    },
    /// The connection brings bytes.
    Bring {
        n_bytes: u32,
        n_pieces: u8,
    },
    Cut,
    FailNextOpen {
        can_retry: bool,
    },
    ViewerWaits,
    Pass {
        millis: u16,
    },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..1000_u16, prop_oneof![1..5_000_u64, Just(u64::MAX), 1..3_000_000_u64])
            .prop_map(|(at, n_bytes)| Action::Open { at, n_bytes }),
        2 => (-2_000_000..2_000_000_i32).prop_map(Action::OpenNear),
        2 => any::<u8>().prop_map(Action::Close),
        10 => (any::<u8>(), 1..20_u8).prop_map(|(reader, n_pieces)| Action::Read { reader, n_pieces }),
        12 => (1..=PIECE_BYTES_MAX as u32, 1..12_u8)
            .prop_map(|(n_bytes, n_pieces)| Action::Bring { n_bytes, n_pieces }),
        1 => Just(Action::Cut),
        1 => any::<bool>().prop_map(|can_retry| Action::FailNextOpen { can_retry }),
        1 => Just(Action::ViewerWaits),
        3 => (1..20_000_u16).prop_map(|millis| Action::Pass { millis }),
    ]
}

/// The provider and the clients around one session.
struct World {
    session: FileSession,
    edges: Edges,
    now: Instant,
    /// The next byte of the open socket.
    socket: Option<u64>,
    has_slot: bool,
    /// Open requests: what each expects next, and its end.
    clients: Vec<(ReaderId, u64, u64)>,
    fails_next: Option<bool>,
    n_opened: usize,
}

impl World {
    fn new(length: u64, edge: u64) -> Self {
        #[expect(clippy::disallowed_methods, reason = "time is simulated from here on")]
        let now = Instant::now();
        World {
            session: FileSession::new(None, now),
            edges: Edges { n_bytes: edge, length },
            now,
            socket: None,
            has_slot: false,
            clients: Vec::new(),
            fails_next: None,
            n_opened: 0,
        }
    }

    fn length(&self) -> u64 {
        self.edges.length
    }

    /// Carries out the steps of the session, except reads. Returns the last one.
    fn settle(&mut self) -> Step {
        for _ in 0..50 {
            let step = self.session.next(&self.edges, self.now);
            match step {
                Step::Open { at } => {
                    assert_eq!(self.socket, None, "never two sockets");
                    assert!(at < self.length(), "opened at {at}");
                    self.has_slot = true;
                    match self.fails_next.take() {
                        Some(can_retry) => {
                            self.has_slot = can_retry;
                            self.session.failed(self.has_slot, can_retry, self.now);
                        }
                        None => {
                            self.socket = Some(at);
                            self.n_opened += 1;
                            self.session.opened(at, self.length());
                        }
                    }
                }
                Step::Close => {
                    self.socket = None;
                    self.session.closed(self.has_slot);
                }
                Step::Release => {
                    assert!(self.has_slot);
                    (self.socket, self.has_slot) = (None, false);
                    self.session.released();
                }
                Step::Read => {
                    assert!(self.socket.is_some());
                    return step;
                }
                Step::Wait(until) => {
                    assert!(until.is_none_or(|it| it > self.now), "a wait is over at once");
                    return step;
                }
            }
            assert_eq!(self.session.has_slot(), self.has_slot);
        }
        panic!("the session does not settle");
    }

    fn bring(&mut self, n_bytes: usize) {
        let Some(at) = self.socket else { return };
        let n_bytes = n_bytes.min((self.length() - at) as usize);
        if n_bytes == 0 {
            self.socket = None;
            return self.session.cut(self.now);
        }
        self.session.received(bytes(at, n_bytes), &self.edges, self.now);
        self.socket = Some(at + n_bytes as u64);
        assert!(self.session.held_bytes() <= HELD_BYTES_MAX, "{} bytes held", self.session.held_bytes());
    }

    /// Reads pieces for a client, which leaves at the end.
    fn read(&mut self, index: usize, n_pieces: u8) -> usize {
        let mut n_bytes = 0;
        for _ in 0..n_pieces {
            let (reader, at, end) = self.clients[index];
            match self.session.read(reader, &self.edges, self.now) {
                Read::Piece(piece) => {
                    assert!(!piece.is_empty() && piece == bytes(at, piece.len()), "wrong bytes at {at}");
                    n_bytes += piece.len();
                    self.clients[index].1 += piece.len() as u64;
                    assert!(self.clients[index].1 <= end);
                }
                Read::Wait => break,
                Read::End => {
                    assert_eq!(at, end, "the whole range was delivered");
                    self.leave(index);
                    break;
                }
                Read::Failed(_) => {
                    self.leave(index);
                    break;
                }
            }
        }
        n_bytes
    }

    fn leave(&mut self, index: usize) {
        let (reader, _, _) = self.clients.remove(index);
        self.session.close(reader);
    }

    fn open(&mut self, at: u64, n_bytes: u64) {
        let end = at.saturating_add(n_bytes).min(self.length());
        if at < end && self.clients.len() < 16 {
            let reader = self.session.open(at..end, self.now);
            self.clients.push((reader, at, end));
            // Clients may take some time to ask for the first byte.
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Open { at, n_bytes } => self.open(u64::from(at) * self.length() / 1000, n_bytes),
            Action::OpenNear(distance) => {
                let at = self.session.position().unwrap_or(0);
                self.open(at.saturating_add_signed(distance.into()), u64::MAX);
            }
            Action::Close(index) if !self.clients.is_empty() => {
                self.leave(usize::from(index) % self.clients.len())
            }
            Action::Read { reader, n_pieces } if !self.clients.is_empty() => {
                self.read(usize::from(reader) % self.clients.len(), n_pieces);
            }
            Action::Bring { n_bytes, n_pieces } => {
                for _ in 0..n_pieces {
                    if self.settle() != Step::Read {
                        break;
                    }
                    self.bring(n_bytes as usize);
                }
            }
            Action::Cut if self.socket.take().is_some() => self.session.cut(self.now),
            Action::FailNextOpen { can_retry } => self.fails_next = Some(can_retry),
            Action::ViewerWaits if self.session.may_yield(&self.edges, self.now) => {
                self.session.give_way();
                self.settle();
                assert!(!self.has_slot, "it yields at once");
            }
            Action::Pass { millis } => self.now += Duration::from_millis(millis.into()),
            _ => {}
        }
        self.settle();
    }

    /// Lets the provider send the next bytes, or time pass until something changes.
    fn go_on(&mut self) {
        match self.settle() {
            Step::Read => {
                self.now += Duration::from_millis(2);
                self.bring(PIECE_BYTES_MAX);
            }
            Step::Wait(Some(until)) => self.now = until,
            step => panic!("a client waits for ever: {step:?}"),
        }
    }

    /// Lets all clients read on to their ends at the same time.
    fn finish_all(&mut self) {
        self.fails_next = None;
        for _ in 0..4_000 {
            for index in (0..self.clients.len()).rev() {
                self.read(index, u8::MAX);
            }
            if self.clients.is_empty() {
                return;
            }
            self.go_on();
        }
        panic!("clients do not finish");
    }

    /// Lets one client read to its end while the others do nothing.
    fn finish(&mut self, index: usize) {
        self.fails_next = None;
        let n_before = self.clients.len();
        for _ in 0..4_000 {
            self.read(index, u8::MAX);
            if self.clients.len() < n_before {
                return;
            }
            self.go_on();
        }
        panic!("a client does not finish");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// T-slot.4, as far as decisions can break it.
    #[test]
    fn every_byte_is_that_of_the_file_and_no_second_socket_ever_opens(
        length in prop_oneof![1..100_000_u64, 1_000_000..LENGTH_MAX],
        edge in prop_oneof![Just(0_u64), 1..500_000_u64],
        actions in prop::collection::vec(action(), 1..120),
        order in any::<usize>(),
        all_read_on in any::<bool>(),
    ) {
        let mut world = World::new(length, edge.min(length / 2));
        for action in &actions {
            world.act(action);
        }
        // Each client needs a turn, and one who has not had any may interrupt that of another.
        let n_opened_max = world.n_opened + 2 * world.clients.len() + 1;
        if all_read_on {
            world.finish_all();
            prop_assert!(world.n_opened <= n_opened_max, "the connection went to and fro");
        }
        while !world.clients.is_empty() {
            // Clients who do not read have what was brought for them, and get nothing more.
            let n_opened_max = world.n_opened + 2 * world.clients.len() + 1;
            world.finish(order % world.clients.len());
            prop_assert!(world.n_opened <= n_opened_max, "the connection went to and fro");
        }
        world.settle();
        world.now += KEEP;
        world.settle();
        prop_assert_eq!(world.socket, None, "no socket afterwards");
        prop_assert!(!world.has_slot, "no slot afterwards");
    }
}
