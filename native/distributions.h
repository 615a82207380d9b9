// The normal distribution and Student's t distribution: probabilities and quantiles. NaN outside of the domain.
#pragma once

namespace mmeval {

double normal_cdf(double x);
double normal_quantile(double p);

// `freedom` is any number above 0, infinity included.
double t_cdf(double freedom, double t);
double t_quantile(double freedom, double p);

// 1 / (1 + exp(-x)) and its inverse.
double expit(double x);
double logit(double p);

}  // namespace mmeval
