declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
define void @kernel(ptr %buffers, ptr %vals, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" {
entry:
  %v1 = getelementptr ptr, ptr %buffers, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v10 = getelementptr ptr, ptr %buffers, i64 1
  %v11 = load ptr, ptr %v10, align 8
  br label %start
start:
  br label %loop1
loop1:
  %v3 = phi i64 [ 0, %start ], [ %v18, %loop1 ]
  %v4 = mul i64 %v3, 16
  %v5 = insertelement <16 x i64> poison, i64 %v4, i64 0
  %v6 = shufflevector <16 x i64> %v5, <16 x i64> poison, <16 x i32> zeroinitializer
  %v7 = add <16 x i64> %v6, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %v8 = srem <16 x i64> %v7, splat (i64 3)
  %v9 = icmp ne <16 x i64> %v8, splat (i64 2)
  %v12 = icmp slt <16 x i64> %v7, splat (i64 1)
  %v13 = xor <16 x i1> %v12, splat (i1 true)
  %v14 = getelementptr float, ptr %v11, i64 %v4
  %v15 = getelementptr float, ptr %v14, i64 -1
  %v16 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %v15, i32 4, <16 x i1> %v13, <16 x float> splat (float 0xC01C000000000000))
  %v17 = getelementptr float, ptr %v2, i64 %v4
  call void @llvm.masked.store.v16f32.p0(<16 x float> %v16, ptr %v17, i32 4, <16 x i1> %v9)
  %v18 = add nsw i64 %v3, 1
  %v19 = icmp slt i64 %v18, 3
  br i1 %v19, label %loop1, label %done2
done2:
  ret void
}
