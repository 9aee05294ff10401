//! Prices of slices: a bound on every plan, and the way to nearly the best one.
//!
//! Give each kind of slice i a price p_i such that no way to cut a GPU is worth more than a GPU costs: sum_i a_ci p_i
//! <= cost_c for every configuration c. Then any plan costs at least what its slices are worth, and service j's slices
//! are worth at least C_j(p), the cheapest set of whole slices that serves it. So sum_j C_j(p) bounds every plan from
//! below, whatever the prices.
//!
//! This is the Lagrangian dual of the compact model in which the demands stay whole, equal to the linear relaxation
//! over all *patterns* (sets of slices that serve a service) by Dantzig and Wolfe's decomposition. Three things make it
//! strong here. Prices live in as many dimensions as there are kinds of slices, five for one GPU type, however many
//! services there are. An extreme solution of the pattern relaxation has at most that many services with mixed
//! patterns, so that the bound is off by a few GPUs, not by a share. And C_j may be any function of the counts, so that
//! rules under which throughput is not linear in n are no harder than the paper's.
//!
//! `cover` finds C_j(p), `dual` the best prices, `round` a plan near them.

pub(crate) mod cover;
pub(crate) mod dual;
pub(crate) mod round;
#[cfg(test)]
mod tests;
