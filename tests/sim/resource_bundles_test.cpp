// SPDX-License-Identifier: Apache-2.0
// Resources that all flows use together are one, until some flow uses a part of them.
#include "sim/resource_bundles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/max_min.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Split = std::pair<ResourceId, ResourceId>;

struct Bundles {
  explicit Bundles(const std::vector<double>& capacities) : count(capacities.size()) {
    for (const double capacity : capacities) all.add(capacity);
  }

  std::vector<Split> use(const std::vector<ResourceBundles::Wanted>& wanted) {
    std::vector<Split> splits;
    all.use(wanted, [&](ResourceId known, ResourceId apart) { splits.emplace_back(known, apart); });
    return splits;
  }
  std::vector<ResourceId> representatives() const {
    std::vector<ResourceId> of;
    for (ResourceId id = 0; id < count; ++id) of.push_back(all.representative(id));
    return of;
  }

  std::size_t count;
  ResourceBundles all;
};

TEST(ResourceBundles, TheNarrowestRepresentsThoseThatAreUsedAlike) {
  Bundles bundles({5, 3, 4, 3, 9});
  EXPECT_THAT(bundles.representatives(), ElementsAre(0, 1, 2, 3, 4));
  // 2 is used twice by every flow, and 4 by none so far.
  EXPECT_THAT(bundles.use({{0, 1}, {1, 1}, {2, 2}, {3, 1}}), IsEmpty());
  EXPECT_THAT(bundles.representatives(), ElementsAre(1, 1, 2, 1, 4));
  EXPECT_THAT(bundles.all.members(1), ElementsAre(0, 1, 3));
  // Others that use them so, and 4.
  EXPECT_THAT(bundles.use({{0, 1}, {1, 1}, {2, 2}, {3, 1}, {4, 1}}), IsEmpty());
  EXPECT_THAT(bundles.representatives(), ElementsAre(1, 1, 2, 1, 4));
}

TEST(ResourceBundles, AreSplitByWhoUsesAPart) {
  Bundles bundles({5, 3, 4, 3, 9});
  bundles.use({{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  // 1 represents itself and 2 now; of the rest, 3 is the narrowest.
  EXPECT_THAT(bundles.use({{1, 1}, {2, 1}}), ElementsAre(Split(1, 3)));
  EXPECT_THAT(bundles.representatives(), ElementsAre(3, 1, 1, 3, 4));
  // What represented them is told apart from what is left.
  EXPECT_THAT(bundles.use({{3, 1}, {4, 1}}), ElementsAre(Split(3, 0)));
  EXPECT_THAT(bundles.representatives(), ElementsAre(0, 1, 1, 3, 4));
  EXPECT_THAT(bundles.use({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), IsEmpty());
}

TEST(ResourceBundles, AreSplitByWhoUsesAPartMoreOften) {
  Bundles bundles({5, 3, 4, 7});
  bundles.use({{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  // In three: what is used twice, what is used once, and what is not used.
  EXPECT_THAT(bundles.use({{0, 2}, {1, 1}}), ElementsAre(Split(1, 2), Split(2, 0)));
  EXPECT_THAT(bundles.representatives(), ElementsAre(0, 1, 2, 2));
}

/// Flows over stretches of a long way, so that kinds of flows that come later split what others
/// use at that time. Rates are those of a machine where nothing is bundled.
TEST(MaxMin, IsTheSameWhetherResourcesAreToldApartSoonerOrLater) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::vector<double> capacities = {1, 1, 1.25, 4};
    MaxMin apart, bundled;
    constexpr ResourceId kWay = 14;
    for (ResourceId i = 0; i < kWay; ++i) {
      const double capacity = capacities[random() % capacities.size()];
      apart.add_resource(capacity);
      bundled.add_resource(capacity);
    }
    for (MaxMin* const one : {&apart, &bundled}) one->add_resource(0.3);  // what flows have alone
    std::vector<std::pair<std::vector<ResourceId>, ResourceId>> kinds;
    for (int i = 0; i < 20; ++i) {
      const auto begin = static_cast<ResourceId>(random() % kWay);
      const auto end = begin + 1 + static_cast<ResourceId>(random() % (kWay - begin));
      std::vector<ResourceId> route;
      for (ResourceId id = begin; id < end; ++id) {
        route.insert(route.end(), random() % 9 == 8 ? 2U : 1U, id);
      }
      const ResourceId alone = random() % 3 == 0 ? kWay : kNoResource;
      if (apart.class_of(route, alone) == kinds.size()) kinds.emplace_back(route, alone);
    }
    for (ResourceId i = 0; i < kWay; ++i) apart.class_of(std::vector{i});
    ClassId known = 0;
    for (int step = 0; step < 200; ++step) {
      // As an engine does: flows begin and end, and new kinds come, before rates are solved for.
      for (std::size_t change = 1 + random() % 5; change > 0; --change) {
        if (known < kinds.size() && (known == 0 || random() % 16 == 0)) {
          ASSERT_EQ(bundled.class_of(kinds[known].first, kinds[known].second), known);
          ++known;
        }
        const auto changed = static_cast<ClassId>(random() % known);
        const bool ends = apart.flows(changed) > 0 && random() % 2 == 0;
        for (MaxMin* const one : {&apart, &bundled}) {
          if (ends) {
            one->remove(changed);
          } else {
            one->add(changed);
          }
        }
      }
      apart.solve();
      bundled.solve();
      for (ClassId id = 0; id < known; ++id) {
        ASSERT_EQ(bundled.class_of(kinds[id].first, kinds[id].second), id);
        if (apart.flows(id) == 0) continue;
        const double rate = apart.rate(id);
        ASSERT_NEAR(bundled.rate(id), rate, 1e-12 * rate) << "step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
