//! Clocks: units, wrapping and differences of the PCR and of time stamps.

/// PTS and DTS wrap at 2³³ ticks of 90 kHz.
pub const STAMP_MODULUS: u64 = 1 << 33;
/// The PCR wraps at the same time, in ticks of 27 MHz.
pub const PCR_MODULUS: u64 = STAMP_MODULUS * 300;
/// Ticks of the PCR in a second.
pub const PCR_HZ: u64 = 27_000_000;
/// Ticks of PTS and DTS in a second.
pub const STAMP_HZ: u64 = 90_000;

/// A larger step of the programme clock, or a step backwards, is a jump.
const PCR_STEP_MAX: u64 = 5 * PCR_HZ;

/// Returns the programme time between two clock references in ticks of the PCR; `None` if the clock jumped in
/// between. `is_break` is true if the stream declares a discontinuity.
pub fn pcr_step(last: u64, pcr: u64, is_break: bool) -> Option<u64> {
    let step = (pcr + PCR_MODULUS - last) % PCR_MODULUS;
    Some(step).filter(|it| !is_break && *it <= PCR_STEP_MAX)
}

/// Unwraps a counter: each value is taken to be the nearest to the one before.
#[derive(Clone, Debug)]
pub struct Unwrap {
    modulus: u64,
    last: Option<u64>,
}

impl Unwrap {
    /// Creates an unwrapper for PTS and DTS, in ticks of 90 kHz.
    pub fn stamps() -> Self {
        Self { modulus: STAMP_MODULUS, last: None }
    }

    /// Creates an unwrapper for the PCR, in ticks of 27 MHz.
    pub fn pcr() -> Self {
        Self { modulus: PCR_MODULUS, last: None }
    }

    /// Returns the unwrapped value. The first value is returned unchanged; a value before zero is returned
    /// one period later.
    pub fn unwrap(&mut self, value: u64) -> u64 {
        let value = value % self.modulus;
        let next = match self.last {
            None => value,
            Some(last) => {
                let forward = (value + self.modulus - last % self.modulus) % self.modulus;
                if forward <= self.modulus / 2 {
                    last.saturating_add(forward)
                } else {
                    let back = self.modulus - forward;
                    last.checked_sub(back).unwrap_or(last + self.modulus - back)
                }
            }
        };
        self.last = Some(next);
        next
    }

    /// Continues after this unwrapped value, if there is one.
    pub(crate) fn continue_from(&mut self, last: Option<u64>) {
        self.last = last;
    }

    /// Resets the state: the next value is treated as the first.
    pub fn reset(&mut self) {
        self.last = None;
    }
}

/// Returns the signed distance between two stamps modulo `modulus`, at most half a period.
pub fn distance(from: u64, to: u64, modulus: u64) -> i64 {
    let forward = (to % modulus + modulus - from % modulus) % modulus;
    if forward <= modulus / 2 { forward as i64 } else { -((modulus - forward) as i64) }
}
