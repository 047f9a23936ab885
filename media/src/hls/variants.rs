//! The choice among the variants of a master playlist.

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::hls::playlist::{MasterPlaylist, Variant, VariantPicture};

/// Limits of the variants that are chosen, if the provider offers others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariantLimits {
    /// Maximum height of the picture.
    pub height_max: Option<u32>,
    /// Maximum bit rate.
    pub bits_per_second_max: Option<u64>,
}

/// The variants that are still to be tried, the preferred one first.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Variants(VecDeque<Variant>);

impl Variants {
    /// Orders the variants: the highest bit rate within the limits, then lower ones, then those beyond the limits, the
    /// lowest first. Those without sound come last. Those whose sound is in playlists of its own are left out.
    ///
    /// If any variant certainly has a picture, those without one are left out, and those that may have one come after it. If
    /// the sound of all with a picture is in playlists of its own, none is left.
    pub fn new(master: MasterPlaylist, limits: VariantLimits) -> Self {
        let is_certain = |it: &Variant| it.picture == VariantPicture::Certain;
        let has_picture = master.variants.iter().any(is_certain);
        let mut variants = master.variants;
        let lacks_picture = |it: &Variant| has_picture && it.picture == VariantPicture::None;
        variants.retain(|it| !it.has_separate_audio && !lacks_picture(it));
        if has_picture && !variants.iter().any(is_certain) {
            variants.clear();
        }
        sort(&mut variants, limits);
        Self(variants.into())
    }

    /// Takes the next variant to try.
    pub fn take_next(&mut self) -> Option<Variant> {
        self.0.pop_front()
    }

    /// Returns whether no variant is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the position in the list of the variant that a program plays, which reads sound in playlists of its own, too.
pub fn variant_for_program(master: &MasterPlaylist, limits: VariantLimits) -> Option<u32> {
    let mut variants = master.variants.clone();
    sort(&mut variants, limits);
    variants.first().map(|it| it.position)
}

/// Puts the preferred variant first. Those that certainly have a picture come before all others.
fn sort(variants: &mut [Variant], limits: VariantLimits) {
    let is_within = |it: &Variant| {
        let is_high = it.height.zip(limits.height_max).is_some_and(|(height, max)| height > max);
        let is_fast = limits.bits_per_second_max.is_some_and(|max| it.bits_per_second > max);
        !is_high && !is_fast
    };
    variants.sort_by_cached_key(|it| {
        let is_within = is_within(it);
        let (height, bits) = (it.height.unwrap_or(0), it.bits_per_second);
        let downwards = is_within.then_some(Reverse((bits, height)));
        let upwards = (!is_within).then_some((bits, height));
        (it.picture as u8, it.has_no_sound, !is_within, downwards, upwards)
    });
}
