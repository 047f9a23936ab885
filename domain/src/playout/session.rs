//! Progress of a playout since its channel was started.

/// Progress since the last start, which replaces it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Session {
    /// The channel played at another node before the start.
    is_take_over: bool,
    /// A lease was granted, so the waiting client was told to expect packets.
    has_lease_been_granted: bool,
    /// The candidate that plays, or played last.
    last_played: Option<usize>,
    /// The candidate after which the next round continues.
    position: Option<usize>,
}

impl Session {
    pub(super) fn taking_over() -> Self {
        Self { is_take_over: true, ..Self::default() }
    }

    pub(super) fn lease_granted(&mut self) {
        self.has_lease_been_granted = true;
    }

    pub(super) fn has_lease_been_granted(&self) -> bool {
        self.has_lease_been_granted
    }

    pub(super) fn source_plays(&mut self, index: usize) {
        self.last_played = Some(index);
        self.position = Some(index);
    }

    /// The candidate failed, or its source ended: the next round continues after it.
    pub(super) fn moved_on_from(&mut self, index: usize) {
        self.position = Some(index);
    }

    /// Everything was released. The position stays, for a switch that is requested before the next start.
    pub(super) fn end(&mut self) {
        (self.is_take_over, self.last_played) = (false, None);
    }

    /// Returns whether clients have seen something, so that their streams outlast a full account.
    pub(super) fn has_played(&self) -> bool {
        self.is_take_over || self.last_played.is_some()
    }

    /// Returns whether the channel played at another node before the start, and has not played here yet.
    pub(super) fn is_taking_over(&self) -> bool {
        self.is_take_over && self.last_played.is_none()
    }

    pub(super) fn last_played(&self) -> Option<usize> {
        self.last_played
    }

    pub(super) fn position(&self) -> Option<usize> {
        self.position
    }

    /// Moves the indices to those of a new plan. The candidate that played last always has one.
    pub(super) fn move_candidates(&mut self, moved: &[Option<usize>]) {
        self.last_played = self.last_played.and_then(|it| moved[it]);
        self.position = self.position.and_then(|it| moved[it]);
    }
}
