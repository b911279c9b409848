"""
A messy table, understood before it is fitted
=============================================

Houses as somebody exported them: an index that was saved, prices with a currency and gaps, areas with a
unit, days first or months first, codes that look like numbers, and the price once more under another
name. ``ridgefold.diagnose`` says what every column is and what will be done with it, all at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import ridgefold

rng = np.random.default_rng(0)
n = 600
area = rng.uniform(80, 400, n)
heating = rng.choice(["gas", "oil", "heat pump"], n, p=[0.5, 0.3, 0.2])
built = np.datetime64("1950-01-01") + rng.integers(0, 27_000, n)
years = built.astype("datetime64[Y]").astype(int) + 1970
price = 900 * area * (1 + 0.3 * (heating == "heat pump")) * (1 + (years - 1950) / 100)
price = np.round(price * rng.lognormal(0, 0.1, n))

table = {
    "Unnamed: 0": np.arange(n),
    "house_id": [f"H-{j}" for j in rng.permutation(n)],
    "area": [f"{each:.1f} m²" if rng.random() > 0.05 else "?" for each in area],
    "built": [f"{day.day:02}/{day.month:02}/{day.year}" for day in built.tolist()],
    "heating": heating,
    "zip": rng.choice(["01067", "04109", "10115"], n),
    "listed": [f"{each:.0f}" for each in 1.02 * price],
    "price": [f"${each:,.0f}" for each in price],
}
diagnosis = ridgefold.diagnose(table, "price")
print(diagnosis)

# %%
# The index, the identifier and the copy of the price are left out. The rest becomes numbers, and the
# encoder that makes them is used for new rows as well. Here the last 200 rows are kept aside.

data = diagnosis.training_data()
train, test = np.arange(400), np.arange(400, n)
model = ridgefold.LSSVMRegressorCV().fit(data.X[train], np.log(data.y[train]))
predicted = np.exp(model.predict(data.X[test]))
error = np.median(np.abs(predicted / data.y[test] - 1))
print(f"median error on rows that took no part: {error:.1%}")

# %%
# Which columns the features are made of, and how well the prices are met.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
names = list(dict.fromkeys(data.origins))
left.barh(names, [data.origins.count(name) for name in names], color="#2f6f9f")
left.set(xlabel="features", title="what becomes of the columns")
right.plot(data.y[test] / 1000, predicted / 1000, ".", color="#2f6f9f", markersize=4)
ends = [data.y[test].min() / 1000, data.y[test].max() / 1000]
right.plot(ends, ends, color="#888888", linewidth=1)
right.set(xlabel="price, thousands", ylabel="predicted", title="rows that took no part")
plt.show()
