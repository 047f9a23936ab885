//! Programs that need another answer than the standard one, as data, each with its evidence.

/// A program that uses the emulated tuner and does not follow the answers of real tuners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunerClient {
    /// The start of its `User-Agent`.
    pub agent: &'static str,
    /// The status by which it recognises that all tuners are in use.
    pub all_in_use: u16,
    /// How this is known.
    pub evidence: &'static str,
}

/// The status by which other programs recognise that all tuners are in use. Real tuners send it.
pub const ALL_IN_USE: u16 = 503;

/// The known programs.
pub const TUNER_CLIENTS: [TunerClient; 1] = [TunerClient {
    agent: "Kodi/",
    all_in_use: 403,
    evidence: "pvr.hdhomerun 20.4.0 reads the status of the stream before it plays: 403 shows \"all tuners in use\", any \
               other error shows nothing.",
}];

/// Returns the status by which the program with this user agent recognises that all tuners are in use.
pub fn all_tuners_in_use(agent: &str) -> u16 {
    TUNER_CLIENTS.iter().find(|it| agent.starts_with(it.agent)).map_or(ALL_IN_USE, |it| it.all_in_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_recognised_by_the_start_of_their_user_agent() {
        for (agent, expected) in [
            ("Kodi/20.1 (X11; Linux x86_64) App_Bitness/64 Version/20.1-Git", 403),
            ("Lavf/60.16.100", 503),
            ("Mozilla/5.0 Kodi/20", 503),
            ("", 503),
        ] {
            assert_eq!(all_tuners_in_use(agent), expected, "{agent}");
        }
    }
}
