// SPDX-License-Identifier: Apache-2.0
// Resources that all flows use together are one, until some flow uses a part of them.
#include "sim/resource_bundles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/max_min.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Split = std::pair<ResourceId, ResourceId>;

struct Bundles {
  explicit Bundles(const std::vector<double>& capacities) {
    for (const double capacity : capacities) all.add(capacity);
  }

  std::vector<Split> use(const std::vector<ResourceBundles::Wanted>& wanted) {
    std::vector<Split> splits;
    all.use(wanted, [&](ResourceId known, ResourceId apart) { splits.emplace_back(known, apart); });
    return splits;
  }
  std::vector<ResourceId> stands() const {
    std::vector<ResourceId> of;
    for (ResourceId id = 0; id < all.size(); ++id) of.push_back(all.stand(id));
    return of;
  }

  ResourceBundles all;
};

TEST(ResourceBundles, TheNarrowestStandsForThoseThatAreUsedAlike) {
  Bundles bundles({5, 3, 4, 3, 9});
  EXPECT_THAT(bundles.stands(), ElementsAre(0, 1, 2, 3, 4));
  // 2 is used twice by every flow, and 4 by none so far.
  EXPECT_THAT(bundles.use({{0, 1}, {1, 1}, {2, 2}, {3, 1}}), IsEmpty());
  EXPECT_THAT(bundles.stands(), ElementsAre(1, 1, 2, 1, 4));
  EXPECT_EQ(bundles.all.members(1), 3U);
  // Others that use them so, and 4.
  EXPECT_THAT(bundles.use({{0, 1}, {1, 1}, {2, 2}, {3, 1}, {4, 1}}), IsEmpty());
  EXPECT_THAT(bundles.stands(), ElementsAre(1, 1, 2, 1, 4));
}

TEST(ResourceBundles, AreSplitByWhoUsesAPart) {
  Bundles bundles({5, 3, 4, 3, 9});
  bundles.use({{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  // 1 stands for itself and 2 now, of the rest 3 is the narrowest.
  EXPECT_THAT(bundles.use({{1, 1}, {2, 1}}), ElementsAre(Split(1, 3)));
  EXPECT_THAT(bundles.stands(), ElementsAre(3, 1, 1, 3, 4));
  // What stood for them is told apart from what is left.
  EXPECT_THAT(bundles.use({{3, 1}, {4, 1}}), ElementsAre(Split(3, 0)));
  EXPECT_THAT(bundles.stands(), ElementsAre(0, 1, 1, 3, 4));
  EXPECT_THAT(bundles.use({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), IsEmpty());
}

TEST(ResourceBundles, AreSplitByWhoUsesAPartMoreOften) {
  Bundles bundles({5, 3, 4, 7});
  bundles.use({{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  // In three: what is used twice, what is used once, and what is not used.
  EXPECT_THAT(bundles.use({{0, 2}, {1, 1}}), UnorderedElementsAre(testing::_, testing::_));
  EXPECT_THAT(bundles.stands(), ElementsAre(0, 1, 2, 2));
}

/// Flows over stretches of a long way, so that kinds of flows that come later split what others
/// use at that time. Rates are those of where all kinds are known beforehand.
TEST(MaxMin, IsTheSameWhetherResourcesAreToldApartSoonerOrLater) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::vector<double> kinds = {1, 1, 1.25, 4};
    MaxMin early, late;
    constexpr int kWay = 14;
    for (int i = 0; i < kWay; ++i) {
      const double capacity = kinds[random() % kinds.size()];
      early.add_resource(capacity);
      late.add_resource(capacity);
    }
    std::vector<std::vector<ResourceId>> routes;
    for (int i = 0; i < 20; ++i) {
      const auto begin = static_cast<ResourceId>(random() % kWay);
      const auto end = begin + 1 + static_cast<ResourceId>(random() % (kWay - begin));
      std::vector<ResourceId> route;
      for (ResourceId id = begin; id < end; ++id)
        route.insert(route.end(), 1 + random() % 9 / 8, id);
      if (early.class_of(route) == routes.size()) routes.push_back(route);
    }
    ClassId known = 0;
    for (int step = 0; step < 300; ++step) {
      if (known < routes.size() && step % 8 == 0) {
        ASSERT_EQ(late.class_of(routes[known]), known);
        ++known;
      }
      const auto changed = static_cast<ClassId>(random() % known);
      const bool ends = early.flows(changed) > 0 && random() % 2 == 0;
      for (MaxMin* const one : {&early, &late}) {
        if (ends) {
          one->remove(changed);
        } else {
          one->add(changed);
        }
        one->solve();
      }
      for (ClassId id = 0; id < known; ++id) {
        ASSERT_EQ(late.class_of(routes[id]), id);
        if (early.flows(id) == 0) continue;
        const double rate = early.rate(id);
        ASSERT_NEAR(late.rate(id), rate, 1e-12 * rate) << "step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
